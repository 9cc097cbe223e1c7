# The end of every operation: a job of the sandbox, in whose folder the request is, and where the result is written.
def operation(main):
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    workspace = os.path.dirname(os.path.dirname(os.getcwd()))
    result = outcome(main, request, workspace)
    with open("result.tmp", "w", encoding="utf-8", errors="replace") as file:
        json.dump(result, file)
    os.rename("result.tmp", "result.json")


operation(main)
