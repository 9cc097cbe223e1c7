#!/bin/bash
. "$(dirname "$0")/checks.sh"
check plain has_text variables/PLAIN "a value with ' and \" and \$HOME"
check given has_text variables/GIVEN "given by the order"
check fallback has_text variables/FALLBACK "fall back"
check empty test -f variables/EMPTY -a ! -s variables/EMPTY
check unused has_text variables/UNUSED "given by the order"
check inside has_text variables/INSIDE 'x${COMPARE_GIVEN}x'
check shared has_text variables/SHARED solution
check solution has_text variables/SOLUTION "given by the order"
check frontend has_text variables/DEBIAN_FRONTEND noninteractive
check agent_lacks_verifier test ! -e variables/VERIFIER
check verifier test "$VERIFIER" = "the verifier's"
check verifier_shared test "$SHARED" = verifier
check verifier_given test "$GIVEN" = "given by the order"
check verifier_lacks_solution test -z "${SOLUTION+set}"
check verifier_frontend test -z "${DEBIAN_FRONTEND+set}"
write_rewards
