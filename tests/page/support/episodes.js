/** Real episodes: a sandbox host and a model that answer from a script. */

import { SandboxHost } from './sandbox-host.js'
import { uploadTask } from './tasks.js'

/** Text that would do harm if it were markup, or a command of the terminal. */
export const HOSTILE = '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>'

/**
 * Returns what a model that works as `terminus-2` answers: keys by turn, then it is done.
 *
 * @param {string[]} turns keys of each turn
 * @returns {(question: import('./model-server.js').Question) => import('./model-server.js').Reply}
 */
export function typing(turns) {
  return ({ body }) => {
    const turn = body.messages.filter(({ role }) => role === 'assistant').length
    const isOver = turn >= turns.length
    const commands = isOver ? [] : [{ keystrokes: turns[turn], duration: 0.01 }]
    const text = JSON.stringify({ analysis: isOver ? 'Everything is done.' : `Analysis of turn ${turn + 1}. ${turn === 0 ? HOSTILE : ''}`, plan: `Plan of turn ${turn + 1}.`, commands, task_complete: isOver })
    return { text, cached: turn * 5 }
  }
}

/**
 * Returns what a model that works as `bash` answers: a command by turn, then it is done.
 *
 * @param {string[]} turns
 * @returns {(question: import('./model-server.js').Question) => import('./model-server.js').Reply}
 */
export function scripting(turns) {
  return ({ body }) => {
    const turn = body.messages.filter(({ role }) => role === 'assistant').length
    return { text: turn < turns.length ? `Step ${turn + 1}.\n\`\`\`bash\n${turns[turn]}\n\`\`\`\n` : '```done\n```\n' }
  }
}

/** Starts a host, for the environment of a server. */
export async function startHost() {
  const host = await new SandboxHost().start()
  return { host, environment: { SANDY_BASE_URL: host.url, SANDY_API_KEY: 'key', HF_HUB_OFFLINE: 'true' } }
}

/**
 * Uploads tasks and runs an agent on them.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {{tasks: number[], agent: string, model: string, samples?: number, options?: Record<string, unknown>}} options
 */
export async function runAgent(bench, { tasks, agent, model, samples = 1, options = {} }) {
  const { id } = await bench.api('POST', '/api/runs', { tasks, agent, model_id: `openai-compatible/${model}`, samples, agent_options: options })
  return bench.ended(id, 120_000)
}

/**
 * Uploads tasks, each of which names itself in its instruction.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {string[]} names
 * @returns {Promise<number[]>} ids
 */
export async function uploadTasks(bench, names) {
  const ids = []
  for (const name of names) ids.push((await uploadTask(bench, name, 1, { 'instruction.md': `Work on ${name}. Write the number of lines of /app/data.txt to /app/answer.txt.\n` })).id)
  return ids
}

/** Output of a small program for the pictures, in colors. */
const LISTING = 'total 12\n\x1b[1;34msrc\x1b[0m  \x1b[32mrun.sh\x1b[0m  data.txt\n'
const TABLE = '┌──────┬───────┐\n│ name │ lines │\n├──────┼───────┤\n│ \x1b[36mdata\x1b[0m │ \x1b[1m   42\x1b[0m │\n└──────┴───────┘\n'

/**
 * Runs two agents on the same tasks, for pictures.
 *
 * @param {import('./world.js').World} world
 * @param {SandboxHost} host
 */
export async function fillEpisodes({ bench, model }, host) {
  host.answer = ({ before }) => (before % 2 === 1 ? LISTING : TABLE)
  const tasks = await uploadTasks(bench, ['count-lines', 'fix-table', 'sort-names'])
  /** @param {'terminus-2' | 'bash'} agent @param {number} share every how many episodes fail */
  const run = (agent, share) => {
    let count = 0
    host.reward = () => (count++ % share === 0 ? 0 : 1)
    const turns = ['ls -la', 'cat data.txt', 'wc -l < data.txt > answer.txt', 'cat answer.txt']
    model.answer = agent === 'bash' ? scripting(turns) : typing(turns.map((turn) => `${turn}\n`))
    return runAgent(bench, { tasks, agent, model: 'atlas-70b', samples: 4 })
  }
  return { terminal: await run('terminus-2', 5), bash: await run('bash', 2) }
}
