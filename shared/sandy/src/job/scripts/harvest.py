# Returns the results of a job: `isolation`, `noted`, `tail out`, `tail err`, and each result file that exists. For a
# range of one file, returns only its bytes: `bytes`. The last line is `end`, since a host may truncate long output.
import binascii

SHOWN = 8 * 1024


def coded(data):
    return ":" + binascii.b2a_base64(data, newline=False).decode()


def read(descriptor, offset, length):
    data = b""
    while len(data) < length:
        more = os.pread(descriptor, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def main(job, *asked):
    place = job_folder(job)
    if place is None:
        say("none")
    else:
        send(place, *asked)
    say("end")


def send(place, room, *asked):
    room = int(room)
    if asked[:1] == ("range",):
        descriptor, _ = file_in(place, asked[1])
        offset, length = int(asked[2]), min(int(asked[3]), room)
        return say("bytes", coded(b"" if descriptor is None else read(descriptor, offset, length)))
    say("isolation", coded(os.environ.get("SANDY_ISOLATION", "").encode("utf-8", "replace")[:200]))
    say("noted", *words_in(place, "rc"))
    for name in ("out", "err"):
        descriptor, size = file_in(place, name)
        if descriptor is not None:
            say("tail", name, coded(read(descriptor, max(0, size - SHOWN), SHOWN)))
    for index, (path, most) in enumerate(zip(asked[::2], map(int, asked[1::2]))):
        descriptor, size = file_in(place, path)
        if descriptor is None:
            if size:
                say("file", index, "other")
            continue
        if size > most:
            say("file", index, "long", size)
        elif size > room:
            say("file", index, "more", size)
        else:
            data = read(descriptor, 0, size)
            room -= len(data)
            say("file", index, "text", coded(data))
        os.close(descriptor)
