/** What stored conversations and verified changes add to samples, as the API shows them. */

/** Text that would do harm if it were markup. */
const HOSTILE = '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>'

/** Messages of a short conversation, in the form of the official package. */
export const MESSAGES = [
  { role: 'assistant', content: 'Hi! How can I help you today?', tool_calls: null },
  { role: 'user', content: `My phone has no signal. ${HOSTILE}`, tool_calls: null, usage: { input_tokens: 900, output_tokens: 20, cost_usd: 0.002 }, latency_ms: 1200, model: 'gpt-user' },
  {
    role: 'assistant', content: null, reasoning: 'I look the customer up.', usage: { input_tokens: 2400, output_tokens: 31, cost_usd: 0.01 }, latency_ms: 2300, timestamp: '2026-11-25T08:00:00Z',
    tool_calls: [{ id: 'a1', name: 'get_customer', arguments: { phone: '555-0101' }, requestor: 'assistant' }, { id: 'a2', name: 'get_line', arguments: {}, requestor: 'assistant' }],
  },
  { role: 'tool', id: 'a1', requestor: 'assistant', content: '{"customer_id": "C7"}', error: false },
  { role: 'tool', id: 'a2', requestor: 'assistant', content: `Error: the argument line_id is missing ${HOSTILE}`, error: true },
  { role: 'assistant', content: 'Please turn **airplane mode** off.', tool_calls: null },
  { role: 'user', content: null, tool_calls: [{ id: 'u1', name: 'toggle_airplane_mode', arguments: {}, requestor: 'user' }] },
  { role: 'tool', id: 'u1', requestor: 'user', content: 'Airplane mode is now OFF.', error: false },
  { role: 'user', content: 'It works, thanks! ###STOP###', tool_calls: null },
]

/** Reward of the evaluator: one assertion and one action are missed; the state of the database isn't part of it. */
export const REWARD = {
  reward: 0, reward_basis: ['ENV_ASSERTION', 'ACTION'], reward_breakdown: { ENV_ASSERTION: 0, ACTION: 1 }, nl_assertions: null, communicate_checks: null, info: { env: null },
  db_check: { db_match: true, db_reward: 1 },
  env_assertions: [
    { env_assertion: { env_type: 'user', func_name: 'assert_service_status', arguments: { expected_status: 'connected' }, assert_value: true, message: null }, met: true, reward: 1 },
    { env_assertion: { env_type: 'assistant', func_name: 'assert_line_active', arguments: { line_id: HOSTILE }, assert_value: false, message: null }, met: false, reward: 0 },
  ],
  action_checks: [{ action: { action_id: 'toggle_0', requestor: 'user', name: 'toggle_airplane_mode', arguments: {}, info: null }, action_match: true, action_reward: 1 }],
}

/**
 * Returns what a conversation adds to a sample.
 *
 * @param {object[]} messages
 * @param {object} [facts] other facts about the conversation
 */
export function conversation(messages, facts = {}) {
  return {
    prompt: 'Conversation about the task demo of the domain demo.', response: '', detail: { termination: 'user_stop', steps: 5, tool_errors: 1, user_model: 'openrouter/user-model' },
    reason: 'The reward misses ENV_ASSERTION.', outcome: 'incorrect', score: 0,
    judge_output: {
      agent: 'llm_agent', engine: '', round: 1, rewards: null, setup_ms: null, exception: null, test_output: '', logs: [],
      episode_steps: [{ name: null, rewards: null, exception: null, agent_ms: 9000, verifier_ms: null, tests: null }],
      dialogue: {
        termination: 'user_stop', messages, steps: 5, errors: 1, trial: 0, seed: 626729, user_model: 'openrouter/user-model', package: 'tau2 1.0.1 (0123abcd)', reward: 0, reward_info: REWARD,
        agent: { input_tokens: 2400, output_tokens: 31, cost_usd: 0.01 }, user: { input_tokens: 900, output_tokens: 20, cost_usd: 0.002 }, ...facts,
      },
    },
  }
}

/** Steps of the trajectory of the same conversation, as they are while it runs. */
export const STEPS = [
  { step_id: 1, source: 'agent', message: 'Hi! How can I help you today?', llm_call_count: 0 },
  { step_id: 2, source: 'user', message: `My phone has no signal. ${HOSTILE}` },
  {
    step_id: 3, source: 'agent', message: '', tool_calls: [{ tool_call_id: 'a1', function_name: 'get_customer', arguments: { phone: '555-0101' } }],
    metrics: { prompt_tokens: 2400, completion_tokens: 31 }, observation: { results: [{ source_call_id: 'a1', content: 'Error: unknown' }] }, extra: { failed_calls: ['a1'] },
  },
  { step_id: 4, source: 'user', message: '', extra: { tool_calls: [{ tool_call_id: 'u1', function_name: 'toggle_airplane_mode', arguments: {} }] } },
]

/** A patch of two files, one of them new. */
export const PATCH = `diff --git a/src/count.py b/src/count.py
--- a/src/count.py
+++ b/src/count.py
@@ -1,3 +1,3 @@
 def count(lines):
-    return len(lines) - 1
+    return len(lines)  # ${HOSTILE}
 
diff --git a/notes.txt b/notes.txt
new file mode 100644
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1 @@
+done
`

/**
 * Returns what a verified change adds to a sample.
 *
 * @param {{patch?: string, detail?: object, verification?: object, sample?: object}} [options]
 */
export function verified({ patch = PATCH, detail = {}, verification = {}, sample = {} } = {}) {
  return {
    prompt: 'Counting is wrong.', response: patch, outcome: 'incorrect', score: 0, reason: '2 of 5 required tests did not pass: 1 of 2 to fix, 1 of 3 to keep.',
    detail: {
      instance_id: 'instance_demo__count', resolved: false, patch_bytes: patch.length, image: 'jefzda/sweap-images:demo.count', agent: 'bash', agent_end: 'completed', turns: 2,
      fail_to_pass: { passed: 1, of: 2, tests: [{ name: `test_count.py::test_all ${HOSTILE}`, status: 'FAILED' }, { name: 'test_count.py::test_some', status: 'PASSED' }] },
      pass_to_pass: { passed: 2, of: 3, tests: [{ name: 'test_other.py::test_gone', status: 'MISSING' }, { name: 'test_other.py::test_a', status: 'PASSED' }, { name: 'test_other.py::test_b', status: 'PASSED' }] },
      ...detail,
    },
    judge_output: {
      agent: 'bash', engine: 'podman 5.4.2', round: 1, rewards: null, setup_ms: 4200, exception: null, test_output: '',
      episode_steps: [{ name: null, rewards: null, exception: null, agent_ms: 1800, verifier_ms: null, tests: null }],
      logs: [{ name: 'agent/trajectory.json', bytes: TRAJECTORY.length, end: TRAJECTORY, cut: false }],
      verification: {
        engine: 'podman 5.4.2', round: 1, exit_code: 1, timed_out: false, setup_ms: 900, command_ms: 61_000, exception: null,
        logs: [
          { name: 'verification/output.json', bytes: 42, end: '{"tests": []}', cut: false },
          { name: 'verification/stdout.log', bytes: 30, end: `test_all FAILED ${HOSTILE}`, cut: false },
        ],
        ...verification,
      },
    },
    ...sample,
  }
}

/** Trajectory of an agent with two turns. */
export const TRAJECTORY = JSON.stringify({
  schema_version: 'ATIF-v1.8', agent: { name: 'bash', version: '1', model_name: 'one' },
  steps: [
    { step_id: 1, source: 'user', message: 'Counting is wrong.' },
    { step_id: 2, source: 'agent', message: 'I look.\n```bash\ncat src/count.py\n```', tool_calls: [{ tool_call_id: 'c', function_name: 'bash', arguments: { command: 'cat src/count.py' } }], observation: { results: [{ source_call_id: 'c', content: 'def count(lines):' }] } },
    { step_id: 3, source: 'agent', message: '```done\n```', tool_calls: [{ tool_call_id: 'd', function_name: 'finish', arguments: {} }] },
  ],
})
