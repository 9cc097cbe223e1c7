//! Instructions that define a complete task.

use std::sync::LazyLock;

use super::super::Check;
use super::super::fn_check::fn_check;
use super::super::text::{self, Pattern};
use super::csv;
use super::marks;
use crate::python;

/// Multiples of seven from 10 to 50.
const MULTIPLES: [&str; 6] = ["14", "21", "28", "35", "42", "49"];
/// Required number of questions, and of options per question, for `custom:mcq_count_length`.
const QUESTIONS: usize = 4;
const OPTIONS: usize = 5;
/// Minimum number of lines, counted from Zimbabwe, for `custom:reverse_newline`.
const COUNTRIES_MIN: usize = 52;
/// Capitals north of 45 degrees, from north to south.
#[rustfmt::skip]
const CAPITALS: [&str; 27] = [
    "Reykjavik", "Helsinki", "Oslo", "Tallinn", "Stockholm", "Riga", "Moscow", "Copenhagen", "Vilnius", "Minsk",
    "Dublin", "Berlin", "Amsterdam", "Warsaw", "London", "Brussels", "Prague", "Luxembourg", "Paris", "Vienna",
    "Bratislava", "Budapest", "Vaduz", "Chisinau", "Bern", "Ljubljana", "Zagreb",
];
/// Columns of the three tables.
const CITY_COLUMNS: [&str; 5] = ["ID", "Country", "City", "Year", "Count"];
const PRODUCT_COLUMNS: [&str; 5] = ["ProductID", "Category", "Brand", "Price", "Stock"];
const STUDENT_COLUMNS: [&str; 5] = ["StudentID", "Subject", "Grade", "Semester", "Score"];
/// Required number of records in each of the three tables, including the header.
const CITY_RECORDS: usize = 8;
const PRODUCT_RECORDS: usize = 15;
const STUDENT_RECORDS: usize = 4;
/// Allowed years of a date.
const YEARS: std::ops::RangeInclusive<u32> = 1769..=1821;

static QUESTION: LazyLock<Option<Pattern>> =
    LazyLock::new(|| Pattern::new(r"\n*(?:Question \d+[.|):;]?\s*)").ok());
static OPTION: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"^[A-Ea-e][.|)]\s*\w+").ok());

/// Creates the check of an instruction in the family `custom`. None of them has parameters.
pub(super) fn check(name: &str) -> Option<Box<dyn Check>> {
    let follows: fn(&str) -> bool = match name {
        "multiples" => lists_multiples,
        "mcq_count_length" => asks_longer_and_longer,
        "reverse_newline" => lists_countries_backwards,
        "word_reverse" => |text| reversed_words(text).contains("bald eagle"),
        "character_reverse" => |text| python::lower(text).contains("elgae dlab"),
        "sentence_alphabet" => goes_through_the_alphabet,
        "european_capitals_sort" => lists_capitals,
        "csv_city" => is_city_table,
        "csv_special_character" => is_product_table,
        "csv_quotes" => is_student_table,
        "date_format_list" => |text| python::strip(text).split(',').all(is_date),
        _ => return None,
    };
    Some(fn_check(follows))
}

fn lists_multiples(text: &str) -> bool {
    let runs = text.split(|c| python::digit_value(c).is_none()).filter(|run| !run.is_empty());
    runs.eq(MULTIPLES)
}

fn asks_longer_and_longer(text: &str) -> bool {
    let (Some(question), Some(option)) = (QUESTION.as_ref(), OPTION.as_ref()) else { return false };
    if !text.starts_with("Question") {
        return false;
    }
    let questions: Vec<&str> = question
        .split(text)
        .map(python::strip)
        .filter(|question| !question.is_empty())
        .take(QUESTIONS + 1)
        .collect();
    if questions.len() != QUESTIONS {
        return false;
    }
    let mut lengths = Vec::with_capacity(QUESTIONS);
    for question in questions {
        let mut options = 0;
        let mut stem = String::new();
        for line in question.split('\n').map(python::strip) {
            if option.is_found(line) {
                options += 1;
            } else if options == 0 {
                stem.push(' ');
                stem.push_str(line);
            }
        }
        if options != OPTIONS {
            return false;
        }
        lengths.push(python::strip(&stem).chars().count());
    }
    lengths.is_sorted_by(|before, after| before < after)
}

fn lists_countries_backwards(text: &str) -> bool {
    let lines = text.split('\n').map(marks::trim).filter(|line| !line.is_empty());
    let countries: Vec<_> =
        lines.skip_while(|line| !line.contains("Zimbabwe")).map(marks::fold_to_ascii).collect();
    countries.len() >= COUNTRIES_MIN && countries.is_sorted_by(|before, after| before >= after)
}

/// Returns the words in reverse order, in lowercase and without punctuation marks. Without marks they form one
/// sentence, which the official program requires, too.
fn reversed_words(text: &str) -> String {
    let text = marks::remove_marks(&python::lower(text));
    python::split(&text).rev().collect::<Vec<_>>().join(" ")
}

fn goes_through_the_alphabet(text: &str) -> bool {
    let sentences = text::sentences(text);
    let starts_with = |(sentence, letter): (&&str, char)| {
        python::split(sentence).next().is_some_and(|word| python::lower(word).starts_with(letter))
    };
    sentences.len() == 26 && sentences.iter().zip('a'..='z').all(starts_with)
}

fn lists_capitals(text: &str) -> bool {
    let text = marks::fold_to_ascii(text);
    text.split(',').map(python::strip).filter(|capital| !capital.is_empty()).eq(CAPITALS)
}

fn is_city_table(text: &str) -> bool {
    let Ok(records) = csv::records(text, ',', CITY_RECORDS + 1) else { return false };
    records.len() == CITY_RECORDS
        && records.first().is_some_and(|header| header == &CITY_COLUMNS)
        && records.iter().all(|record| record.len() == CITY_COLUMNS.len())
}

/// Returns true if the first line names the columns, each optionally quoted. Blanks may follow a separator.
fn has_header(text: &str, columns: &[&str; 5], separator: char, is_blank: impl Fn(char) -> bool) -> bool {
    let header = python::strip(text.split('\n').next().unwrap_or_default());
    let mut fields = header.split(separator);
    columns.iter().enumerate().all(|(at, column)| {
        let Some(field) = fields.next() else { return false };
        let field = if at == 0 { field } else { field.trim_start_matches(&is_blank) };
        let bare = field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field);
        bare == *column
    }) && fields.next().is_none()
}

fn is_product_table(text: &str) -> bool {
    if !has_header(text, &PRODUCT_COLUMNS, ',', |c| matches!(c, ' ' | '\t')) {
        return false;
    }
    // Quotes are doubled and wrapped in quotes so that they stay in the fields.
    let quoted = text.replace('"', "\"\"\"");
    let Ok(records) = csv::records(&quoted, ',', PRODUCT_RECORDS + 1) else { return false };
    if records.len() != PRODUCT_RECORDS {
        return false;
    }
    // Records after the first one with a special character are not examined.
    for record in records.iter().skip(1) {
        if record.len() != PRODUCT_COLUMNS.len() {
            return false;
        }
        if record.iter().any(|field| has_quoted_special(field)) {
            return true;
        }
    }
    false
}

/// Returns true if a field starts with a quote and its first line has a special character with another quote after it.
fn has_quoted_special(field: &str) -> bool {
    let line = field.split('\n').next().unwrap_or_default();
    let is_special = |c: char| !python::is_word(c) && !python::is_space(c);
    let inner = line.strip_prefix('"').and_then(|rest| rest.rsplit_once('"'));
    inner.is_some_and(|(inner, _)| inner.contains(is_special))
}

fn is_student_table(text: &str) -> bool {
    if !has_header(text, &STUDENT_COLUMNS, '\t', |c| c == ' ') {
        return false;
    }
    let quoted = text.replace('"', "\"\"\"");
    let Ok(records) = csv::records(&quoted, '\t', STUDENT_RECORDS + 1) else { return false };
    let is_quoted = |field: &String| {
        let field = python::strip(field);
        field.starts_with('"') && field.ends_with('"')
    };
    records.len() == STUDENT_RECORDS
        && records.iter().all(|record| record.len() == STUDENT_COLUMNS.len() && record.iter().all(is_quoted))
}

/// Returns true if a text is a date `YYYY-MM-DD` during Napoleon's life. Month and day may be zero.
fn is_date(text: &str) -> bool {
    let mut fields = python::strip(text).split('-');
    let mut number = |digits: usize| {
        let field = fields.next().filter(|field| field.chars().count() == digits)?;
        field.chars().try_fold(0, |value, c| Some(value * 10 + u32::from(python::digit_value(c)?)))
    };
    let (Some(year), Some(month), Some(day)) = (number(4), number(2), number(2)) else { return false };
    let days = match month {
        0 => 99,
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    fields.next().is_none() && YEARS.contains(&year) && month <= 12 && day <= days
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_ten_characters() {
        for text in ["1796-04-12", " 1815-06-18\n", "1800-00-99", "1812-02-29", "١٨١٢-02-29"] {
            assert!(is_date(text), "{text:?}");
        }
        for text in [
            "",
            "1796-4-12",
            "1768-01-01",
            "1822-01-01",
            "1800-13-01",
            "1800-02-30",
            "1800-04-31",
            "1800-01-32",
            "1800-01-01-",
            "1800/01/01",
            "1800-01",
            "999999999999-01-01",
            "-1800-01-01",
        ] {
            assert!(!is_date(text), "{text:?}");
        }
    }

    #[test]
    fn a_special_character_must_be_within_quotes() {
        for field in ["\"a&b\"", "\"&\" b", "\"\"\"", "\"a-b\"c\"\nd"] {
            assert!(has_quoted_special(field), "{field:?}");
        }
        for field in ["\"ab\"", "a\"&\"", "\"a&", "\"a\n&\"", "\"\"", "\"", "", "\"a b_1\""] {
            assert!(!has_quoted_special(field), "{field:?}");
        }
    }

    #[test]
    fn a_header_may_have_blanks_after_separators() {
        let has = |text| has_header(text, &CITY_COLUMNS, ',', |c| matches!(c, ' ' | '\t'));
        for text in ["ID,Country,City,Year,Count", " \"ID\", Country,\t\"City\",Year,  Count \r\nx"] {
            assert!(has(text), "{text:?}");
        }
        for text in [
            "",
            "ID,Country,City,Year",
            "ID ,Country,City,Year,Count",
            "ID,Country,City,Year,Count,",
            "\"ID,a,b,c,d",
        ] {
            assert!(!has(text), "{text:?}");
        }
    }
}
