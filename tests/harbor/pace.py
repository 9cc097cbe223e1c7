"""Time of a turn of `terminus-2`: from a reply to the next request, beside the same commands in tmux by hand."""

import statistics

import compare
from compare import docker, say
from scripts import PACE_TURNS, PACE_WAIT, paced

SCRIPT = paced().name
# What the agent does in a turn: keys, the wait that the reply asks for, and the screen. Prints milliseconds.
BY_HAND = f"""
tmux new-session -x 160 -y 40 -d -s hand 'bash --login'
sleep 1
for turn in $(seq {PACE_TURNS}); do
  begin=$(date +%s%N)
  tmux send-keys -t hand -- "echo $turn" Enter
  sleep {PACE_WAIT}
  tmux capture-pane -p -t hand >/dev/null
  echo $((($(date +%s%N) - begin) / 1000000))
done
"""


def by_hand() -> float:
    """Returns the median time of a turn that a shell in a container makes, in milliseconds."""
    times = docker("run", "--rm", "--network", "none", compare.BASE_IMAGE, "bash", "-c", BY_HAND)
    return statistics.median(map(int, times))


def show(gaps: dict[str, list[float]]) -> None:
    """Prints the median times from a reply to the next request, by program in seconds, and what tmux takes by hand."""
    hand = by_hand()
    say(f"from a reply to the next request, median of {PACE_TURNS} turns whose command waits {PACE_WAIT} s:")
    for program, times in gaps.items():
        # Later turns wait longer.
        median = statistics.median(times[:PACE_TURNS]) * 1000 if times else float("nan")
        say(f"  {program}: {median:.0f} ms, {median / hand:.1f} times as long as by hand in tmux ({hand:.0f} ms)")
