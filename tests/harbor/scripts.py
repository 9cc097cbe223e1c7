"""Scripts of `compare_agents.py`: what a model answers, turn by turn.

Commands print the same at any speed. A terminal that echoes keys while another command is running shows them at a place
that depends on the moment, so keys follow only when the prompt is back or a program is reading. Nothing runs in the
background or prints a process id or the time.
"""

import dataclasses
import json

# Lines of keystrokes that exceed 16,000 bytes: tmux refuses them as a command, so they are pasted from a file.
LONG_LINES = 400
# Turns of `paced`, and the time in seconds that each of them waits for its command.
PACE_TURNS = 30
PACE_WAIT = 0.1


@dataclasses.dataclass(frozen=True)
class Reply:
    """Answer to one request: a text, which may be cut by the length limit, or an error of the provider."""

    text: str
    is_cut: bool = False
    error_code: str = ""
    # HTTP status of an error.
    status: int = 400


@dataclasses.dataclass(frozen=True)
class Script:
    name: str
    # Name of a sample task, or of a task of `tests/harbor/tasks`.
    task: str
    replies: list[Reply]
    # Main reward of the task's tests.
    reward: float
    # Options of the agent, besides those of all scripts.
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    # Parameters of the model, by the names that requests have.
    settings: dict[str, float] = dataclasses.field(default_factory=dict)


def turn(*commands: tuple[str, float], **others) -> Reply:
    """Returns a valid reply in JSON. Commands are keystrokes and durations in seconds."""
    return Reply(json.dumps(turn_fields(*commands, **others)))


def turn_fields(*commands: tuple[str, float], **others) -> dict:
    typed = [{"keystrokes": keystrokes, "duration": duration} for keystrokes, duration in commands]
    return {"analysis": "The prompt is back.", "plan": "Go on.", "commands": typed, **others}


DONE = [turn(task_complete=True), turn(task_complete=True)]
REPAIR_TABLE = [
    ("grep '[^[:space:]]' people.csv | cut -d, -f1-3 > rows\n", 1.0),
    ("sed 's/^[[:blank:]]*//; s/[[:blank:]]*,[[:blank:]]*/,/g; s/[[:blank:]]*$//' rows > fixed.csv\n", 1.0),
]
COUNT_LEVELS = [
    ("grep -ohE '^[^ ]+ \\[[A-Za-z]+\\]' logs/*.log | sed 's/.*\\[//; s/\\]//' | tr a-z A-Z | sort | uniq -c > n\n", 1.0),
    ("awk '{printf \"%s\\\"%s\\\": %d\", (NR > 1 ? \", \" : \"{\"), $2, $1} END {print \"}\"}' n > counts.json\n", 1.0),
]


def solves() -> Script:
    looks = turn(("ls -1\n", 1.0), ("cat -A people.csv\n", 1.0))
    return Script("solves", "fix-csv", [looks, turn(*REPAIR_TABLE), turn(("cat fixed.csv\n", 1.0)), *DONE], 1.0)


def flaws() -> Script:
    """Warnings, repairs, a reply that can't be parsed, and a completion that is taken back."""
    surrounded = f"First a look.\n```json\n{json.dumps(turn_fields(('ls -1 logs\n', 1.0)))}\n```\nThen more."
    unclosed = json.dumps(turn_fields(("wc -l logs/*.log\n", 1.0)))[:-1]
    command = {"keystrokes": "echo one", "note": "no newline", "duration": "long"}
    reordered = {"commands": [command, {"keystrokes": "; echo two\n"}], "plan": 7, "analysis": "Unordered."}
    replies = [
        Reply(surrounded),
        Reply(unclosed),
        Reply("I am not sure what to do."),
        Reply('{"analysis": "Nothing is planned.", "commands": [}'),
        Reply(json.dumps({"analysis": "Something is missing.", "commands": "ls"})),
        Reply(json.dumps(reordered)),
        Reply(json.dumps(turn_fields(task_complete="maybe"))),
        turn(*COUNT_LEVELS, task_complete="yes"),
        turn(("cat counts.json\n", 1.0)),
        Reply(f"Done. {DONE[0].text}"),
        DONE[1],
    ]
    return Script("flaws", "count-log-lines", replies, 1.0)


def long_keystrokes() -> Script:
    """Keystrokes that exceed the limit of a command of tmux, and outputs that exceed that of a message."""
    program = "".join(f"# {number:4} {'-' * 50} é\n" for number in range(LONG_LINES))
    program += "lines = [line.strip(' \\n') for line in open('people.csv')]\n"
    program += "rows = [[cell.strip() for cell in line.split(',')][:3] for line in lines if line]\n"
    program += "open('fixed.csv', 'w').write(''.join(','.join(row) + '\\n' for row in rows))\n"
    replies = [
        # The terminal drops some of what it echoes of so long a text, depending on the machine's load.
        turn(("stty -echo; cat > repair.py; stty echo\n", 2.0), (program, 4.0), ("C-d", 1.0)),
        turn(("wc -c repair.py\n", 1.0), ("python3 repair.py\n", 2.0)),
        turn(("cat repair.py\n", 2.0)),
        turn((f"echo {'a' * 600}\n", 1.0)),
        turn(("echo 'it'\"'\"'s' \"$HOME\" \\\\ `echo x` é\n", 1.0), ("", 0.5)),
        *DONE,
    ]
    return Script("long-keystrokes", "fix-csv", replies, 1.0)


def turn_limit() -> Script:
    """Never finishes: outputs that exceed a message and the terminal's history, an interrupted program, no commands."""
    replies = [
        turn(("seq 100001 101900\n", 2.0)),
        turn(("seq 1 3000\n", 2.0)),
        turn(("sleep 100\n", 1.0), ("C-c", 1.0)),
        turn(("clear\n", 1.0)),
        turn(),
        turn(("printf 'a\\tb\\n\\n\\n\\033[31mred\\033[0m é 漢\\n'\n", 1.0)),
    ]
    return Script("turn-limit", "count-log-lines", replies, 0.0, {"max_turns": str(len(replies))})


def ended_terminal() -> Script:
    """The shell ends before the task is said to be complete."""
    return Script("ended-terminal", "fix-csv", [turn(*REPAIR_TABLE), turn(("exit\n", 2.0))], 1.0)


def xml() -> Script:
    """Replies in XML with warnings, to requests with parameters."""

    def block(inner: str) -> str:
        return f"<response>\n<analysis>A look.</analysis>\n<plan>Go on.</plan>\n{inner}\n</response>"

    typed = "".join(f'<keystrokes duration="{wait}">{keys}</keystrokes>\n' for keys, wait in REPAIR_TABLE)
    entity = "<commands>\n<keystrokes>echo '1 &lt; 2'\n</keystrokes>\n</commands>"
    complete = block("<commands>\n</commands>\n<task_complete>true</task_complete>")
    replies = [
        Reply(block('<commands>\n<keystrokes duration="1.0">ls -1\n</keystrokes>\n</commands>')),
        Reply("Neither a block nor a plan."),
        Reply(f"Here it is:\n{block(entity)}\nThat was it."),
        Reply(block(f"<commands>\n{typed}</commands>")),
        Reply(complete),
        Reply(complete),
    ]
    settings = {"temperature": 0.25, "top_p": 0.875, "max_tokens": 4096}
    return Script("xml", "fix-csv", replies, 1.0, {"parser_name": "xml"}, settings)


def cut_replies() -> Script:
    """The provider cuts a reply at the length limit."""
    whole = turn(*COUNT_LEVELS)
    return Script("cut-replies", "count-log-lines", [Reply(whole.text[:150], is_cut=True), whole, *DONE], 1.0)


def full_context() -> Script:
    """The provider refuses a conversation as too long, which is then replaced by a summary."""
    replies = [
        turn(("cat -A people.csv\n", 1.0)),
        turn(*REPAIR_TABLE),
        Reply("", error_code="context_length_exceeded"),
        Reply("The table was repaired into `/app/fixed.csv`."),
        Reply("1. Which file? 2. Which columns? 3. Any blanks? 4. Any empty lines? 5. Is it checked?"),
        Reply("1. fixed.csv 2. name, age, city 3. No 4. No 5. Not yet"),
        turn(("cat fixed.csv\n", 1.0)),
        *DONE,
    ]
    return Script("full-context", "fix-csv", replies, 1.0)


def provider_errors() -> Script:
    """The provider is busy or fails, before the first reply and between two turns, and then answers again.

    At most two errors follow each other: Harbor's HTTP client repeats a request that often. Its agent repeats more, with
    longer waits, and then ends the episode, while Bench Runner keeps waiting.
    """
    busy = Reply("", error_code="rate_limit_exceeded", status=429)
    failed = Reply("", error_code="server_error", status=500)
    replies = [
        failed,
        turn(("cat -A people.csv\n", 1.0)),
        busy,
        busy,
        turn(*REPAIR_TABLE),
        failed,
        busy,
        DONE[0],
        failed,
        DONE[1],
    ]
    return Script("provider-errors", "fix-csv", replies, 1.0)


def other_user() -> Script:
    """The agent isn't root, and works in a folder other than the image's. Only the oracle's log is missing to the tests."""
    looks = turn(("id -un > name\n", 1.0), ('echo "$HOME" > home\n', 1.0), ("pwd > folder\n", 1.0))
    tries = turn(("touch /etc/changed 2> error && echo yes > is_root || echo no > is_root\n", 1.0), ("cat error\n", 1.0))
    replies = [looks, tries, turn(("echo no > owns_solution\n", 1.0), ("cat name home folder\n", 1.0)), *DONE]
    return Script("other-user", "users", replies, 0.888889)


def paced() -> Script:
    """Many short commands, by which `pace.py` measures the time of a turn."""
    replies = [turn((f"echo {number}\n", PACE_WAIT)) for number in range(PACE_TURNS)]
    return Script("paced", "fix-csv", [*replies, turn(*REPAIR_TABLE), *DONE], 1.0)


SCRIPTS = [
    solves(), paced(), flaws(), long_keystrokes(), turn_limit(), ended_terminal(), xml(), cut_replies(), full_context(),
    provider_errors(), other_user(),
]
