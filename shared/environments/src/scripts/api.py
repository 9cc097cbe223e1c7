# Asks the engine's API how a command in a container ended: the command itself may print and return anything.
import urllib.parse

API_ANSWER_MAX = 16 << 20
RUNNING, ENDED = "running", "ended"


def api(path):
    """Returns the lines of an answer as values, or None if nothing is at the path."""
    # Needed seldom, and slow to load.
    import http.client, socket

    kind, _, place = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").partition("://")
    if kind not in ("unix", "tcp"):
        raise OSError("the engine's address has to begin with unix:// or tcp://")
    connection = http.client.HTTPConnection(place if kind == "tcp" else "localhost", timeout=SHORT_S)
    try:
        if kind == "unix":
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(SHORT_S)
            connection.sock.connect(place)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read(API_ANSWER_MAX)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise OSError("the status is %d" % answer.status)
        return [json.loads(line) for line in text.splitlines()]
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failed("engine", "the engine's API did not answer: %s" % error) from None
    finally:
        connection.close()


def state_of(container, mark, since):
    """Returns whether the command whose arguments have this mark runs or has ended; None if the engine started none."""
    for found in api("/containers/%s/json" % container) or []:
        for name in found.get("ExecIDs") or []:
            # Podman removes those that ended a while ago.
            for run in api("/exec/%s/json" % name) or []:
                if any(mark in word for word in run["ProcessConfig"].get("arguments") or []):
                    if run["Running"]:
                        return RUNNING
                    # Of one that podman never started, this is false.
                    return ENDED if run.get("CanRemove") else None
    return ENDED if has_died(container, mark, since) else None


def has_died(container, mark, since):
    """Returns true if an event says that the command ended. Docker lists commands only as long as they run."""
    filters = urllib.parse.quote(json.dumps({"container": [container]}))
    until = int(time.time()) + 1
    events = api("/events?since=%d&until=%d&filters=%s" % (since, until, filters)) or []
    begun = set()
    for event in events:
        name = event["Actor"]["Attributes"].get("execID")
        if event["Action"].startswith("exec_create") and mark in event["Action"]:
            begun.add(name)
        elif event["Action"] == "exec_die" and name in begun:
            return True
    return False
