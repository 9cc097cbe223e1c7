# The end of every query: a command that may run any number of times. Prints its result after a mark.
import base64, sys


def query(main):
    request = json.loads(base64.b64decode(sys.argv[2]))
    result = json.dumps(outcome(main, request, os.getcwd())).encode()
    print(sys.argv[1], base64.b64encode(result).decode(), flush=True)


query(main)
