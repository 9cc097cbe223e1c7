# `recorder` is the name of the recorder, or empty.
missing=
for program in tmux $recorder; do
  command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
install() {
  if command -v apt-get >/dev/null 2>&1; then
    DEBIAN_FRONTEND=noninteractive apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1"
  elif command -v dnf >/dev/null 2>&1; then
    dnf install -y -q "$1"
  elif command -v yum >/dev/null 2>&1; then
    yum install -y -q "$1"
  elif command -v apk >/dev/null 2>&1; then
    apk add --no-cache "$1"
  elif command -v pacman >/dev/null 2>&1; then
    pacman -Sy --noconfirm "$1"
  elif command -v zypper >/dev/null 2>&1; then
    zypper --non-interactive install "$1"
  else
    return 1
  fi
}
for program in $missing; do
  # Without tmux nothing works; the recording is left out if its program can't be installed.
  (install "$program") >/dev/null 2>&1 </dev/null || true
done
command -v tmux >/dev/null 2>&1
