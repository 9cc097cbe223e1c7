# Writes one reward for each check, and their mean as the reward that counts.
rewards= passed=0 checks=0

check() {
    local name=$1 value=0
    shift
    if "$@"; then value=1; fi
    passed=$((passed + value))
    checks=$((checks + 1))
    rewards="$rewards, \"$name\": $value"
}

has_text() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }

write_rewards() {
    local mean
    mean=$(awk "BEGIN { print $passed / $checks }")
    echo "{\"reward\": $mean$rewards}" > /logs/verifier/reward.json
}
