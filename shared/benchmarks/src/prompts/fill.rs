//! Templates with named slots.

/// Values for the slots of a template, by name.
pub(crate) type Slots<'a> = [(&'a str, &'a str)];

/// Fills the slots `{name}` of a template in one pass. Inserted values are not scanned again, so a question or an
/// answer may contain braces, even the name of a slot. Other braces stay unchanged.
pub(crate) fn fill(template: &str, slots: &Slots<'_>) -> String {
    let length: usize = slots.iter().map(|(_, value)| value.len()).sum();
    let mut filled = String::with_capacity(template.len() + length);
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, brace) = rest.split_at(at);
        filled.push_str(before);
        let slot = slots.iter().find_map(|(name, value)| {
            let after = brace.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((value, after))
        });
        rest = match slot {
            Some((value, after)) => {
                filled.push_str(value);
                after
            }
            None => {
                filled.push('{');
                brace.get(1..).unwrap_or_default()
            }
        };
    }
    filled.push_str(rest);
    filled
}

/// Returns true if the template has a slot for each name.
pub(crate) fn has_slots(template: &str, names: &[&str]) -> bool {
    names.iter().all(|name| template.contains(&format!("{{{name}}}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_not_filled_again() {
        let slots = [("a", "{b} {a}"), ("b", "2")];
        assert_eq!(fill("{a}|{b}|{c}|{{a}}|{|}", &slots), "{b} {a}|2|{c}|{{b} {a}}|{|}");
        assert_eq!(fill("", &slots), "");
        assert!(has_slots("x {a} {b}", &["a", "b"]) && !has_slots("{ab}", &["a"]));
    }

    proptest! {
        #[test]
        fn inserted_values_stay_unchanged(value in any::<String>(), other in any::<String>()) {
            let filled = fill("<{q}>{r}<{x}>", &[("q", &value), ("r", &other)]);
            prop_assert_eq!(filled, format!("<{value}>{other}<{{x}}>"));
        }
    }
}
