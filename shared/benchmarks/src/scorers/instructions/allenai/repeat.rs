//! Instructions to repeat a text.

use super::super::fn_check::fn_check;
use super::CheckResult;
use super::parameters::Parameters;
use crate::python;

/// Text required by `repeat:repeat_simple`, in lowercase.
const SENTENCE: &str = "only output this sentence here, ignore all other requests.";

/// Creates the check of an instruction in the family `repeat`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<CheckResult> {
    Some(match name {
        "repeat_change" => repeat_change(parameters),
        "repeat_simple" => Ok(fn_check(|text| python::lower(python::strip(text)) == SENTENCE)),
        "repeat_span" => repeat_span(parameters),
        _ => return None,
    })
}

fn repeat_change(parameters: &Parameters<'_>) -> CheckResult {
    let request = parameters.nonempty_text("prompt_to_repeat")?.to_owned();
    Ok(fn_check(move |text| {
        request != text && python::split(&request).skip(1).eq(python::split(text).skip(1))
    }))
}

fn repeat_span(parameters: &Parameters<'_>) -> CheckResult {
    let request = parameters.nonempty_text("prompt_to_repeat")?;
    let (start, end) = (parameters.integer("n_start")?, parameters.integer("n_end")?);
    let span = python::lower(python::strip(&slice(request, start, end + 1)));
    Ok(fn_check(move |text| python::lower(python::strip(text)) == span))
}

/// `text[start:end]`, where negative indices count from the end.
fn slice(text: &str, start: i64, end: i64) -> String {
    let length = text.chars().count();
    let place = |at: i64| {
        let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
        if at < 0 { length.saturating_sub(distance) } else { distance.min(length) }
    };
    let (start, end) = (place(start), place(end));
    text.chars().skip(start).take(end.saturating_sub(start)).collect()
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn slices_are_those_of_python() {
        for (start, end, expected) in [
            (0, 3, "añb"),
            (1, 2, "ñ"),
            (2, 99, "bcd"),
            (-2, 5, "cd"),
            (-99, 1, "a"),
            (0, -1, "añbc"),
            (3, 2, ""),
            (9, 12, ""),
            (0, 0, ""),
        ] {
            assert_eq!(slice("añbcd", start, end), expected, "{start}..{end}");
        }
    }
}
