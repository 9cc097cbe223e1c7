//! Suggestions for names that were mistyped.

/// Returns the known name that is most similar to a mistyped one; `None` if none is similar.
pub fn most_similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let all = known.into_iter().map(|known| (distance(name, known), known));
    all.filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns the number of characters to insert, remove or replace in order to turn one name into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, a) in one.chars().enumerate() {
        let mut next = vec![index + 1];
        for (column, b) in other.iter().enumerate() {
            let replaced = row.get(column).map_or(0, |cost| cost + usize::from(a != *b));
            let removed = row.get(column + 1).map_or(0, |cost| cost + 1);
            let inserted = next.last().map_or(0, |cost| cost + 1);
            next.push(replaced.min(removed).min(inserted));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::most_similar;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["timeout_sec", "user", "network_mode"];
        for (name, expected) in [
            ("timout_sec", Some("timeout_sec")),
            ("timeout_secs", Some("timeout_sec")),
            ("usr", Some("user")),
            ("retries", None),
            ("", None),
            ("🦀", None),
        ] {
            assert_eq!(most_similar(name, known), expected, "{name}");
        }
    }
}
