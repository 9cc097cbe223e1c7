//! Differences from the official program.

/// Differences from `terminus-2` of Harbor 0.25.0, as sentences for users.
pub const DEVIATIONS: &[&str] = &[
    "A duration that is an integer too big for a floating-point number counts as invalid, and a reply that is nested more \
     than 900 levels deep isn't valid JSON; the official parser raises an exception.",
    "Lone surrogates in a JSON reply become U+FFFD, and NUL characters in keystrokes are left out; the official program \
     fails when it types them.",
    "A reply with more than 1,000 commands is refused, replies above 16 MiB count as cut, and messages about the form of \
     a reply are limited to 10,000 bytes.",
    "Only an error of the parser makes a reply invalid; officially also a warning does that contains the text `ERROR:`.",
    "An XML reply that was cut after its end is executed; the official run ends with an exception.",
    "Replies that were cut count in tokens and cost, and are steps of the trajectory. The official program adds neither.",
    "After 100 cut replies in a row the episode ends. The official number is that of nested calls of Python.",
    "When a request doesn't fit, the first message always stays in the conversation; officially it may be removed, and \
     the summary then fails after its calls. Without an earlier reply nothing is summarized.",
    "Lengths of conversations are the provider's token counts; officially a local tokenizer counts them again.",
    "Trajectories of summaries contain their own messages only, not copies of the conversation. Short summaries, and \
     each of two summaries in one turn, are steps of the trajectory, too.",
    "In trajectories, an analysis or plan that isn't a text is shown as JSON, not in Python's notation, and a duration \
     that isn't a number as 0.",
    "The template `timeout.txt` isn't used: officially it is for a wait that the agent never makes.",
];
