use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::Instructions;
use super::*;

/// Returns every instruction with valid parameters.
fn instructions() -> Vec<(&'static str, Value)> {
    vec![
        ("count:word_count_range", json!({"min_words": 2.0, "max_words": 9.0})),
        ("count:unique_word_count", json!({"N": 3.0})),
        ("count:conjunctions", json!({"small_n": 2.0})),
        ("count:person_names", json!({"N": 1.0})),
        ("count:numbers", json!({"N": 2.0})),
        ("count:punctuation", json!({})),
        ("count:words_japanese", json!({"N": 3.0})),
        ("count:pronouns", json!({"N": 2.0})),
        (
            "count:keywords_multiple",
            json!({"keyword1": "a", "keyword2": "b", "keyword3": "c", "keyword4": "d", "keyword5": "e"}),
        ),
        ("ratio:stop_words", json!({"percentage": 40.0})),
        ("ratio:sentence_type", json!({})),
        ("ratio:sentence_balance", json!({})),
        ("ratio:overlap", json!({"reference_text": "some text", "percentage": 72.0})),
        ("ratio:sentence_words", json!({})),
        ("words:alphabet", json!({})),
        ("words:vowel", json!({})),
        ("words:consonants", json!({})),
        ("words:palindrome", json!({})),
        ("words:prime_lengths", json!({})),
        ("words:repeats", json!({"small_n": 2.0})),
        ("words:odd_even_syllables", json!({})),
        ("words:last_first", json!({})),
        ("words:paragraph_last_first", json!({})),
        ("words:no_consecutive", json!({})),
        ("words:keywords_specific_position", json!({"keyword": "word", "n": 2, "m": 3})),
        ("words:words_position", json!({"keyword": "word"})),
        ("sentence:alliteration_increment", json!({})),
        ("sentence:keyword", json!({"word": "word", "N": 2.0})),
        ("sentence:increment", json!({"small_n": 1.0})),
        ("format:parentheses", json!({})),
        ("format:quotes", json!({})),
        ("format:options", json!({"options": "yes/no/maybe"})),
        ("format:newline", json!({})),
        ("format:emoji", json!({})),
        ("format:line_indent", json!({})),
        ("format:quote_unquote", json!({})),
        ("format:list", json!({"sep": "!?!?"})),
        ("format:thesis", json!({})),
        ("format:sub-bullets", json!({})),
        ("format:no_bullets_bullets", json!({})),
        ("format:title_case", json!({})),
        ("format:output_template", json!({})),
        ("format:no_whitespace", json!({})),
        ("custom:multiples", json!({})),
        ("custom:mcq_count_length", json!({})),
        ("custom:reverse_newline", json!({})),
        ("custom:word_reverse", json!({})),
        ("custom:character_reverse", json!({})),
        ("custom:sentence_alphabet", json!({})),
        ("custom:european_capitals_sort", json!({})),
        ("custom:csv_city", json!({})),
        ("custom:csv_special_character", json!({})),
        ("custom:csv_quotes", json!({})),
        ("custom:date_format_list", json!({})),
        ("repeat:repeat_change", json!({"prompt_to_repeat": "Say a word."})),
        ("repeat:repeat_simple", json!({})),
        ("repeat:repeat_span", json!({"prompt_to_repeat": "Say a word.", "n_start": 4, "n_end": 9})),
    ]
}

fn make_check(id: &str, kwargs: &Value) -> Result<Box<dyn Check>, CheckError> {
    check(id, kwargs.as_object().unwrap(), None).unwrap()
}

fn follows(id: &str, kwargs: &Value, text: &str) -> bool {
    make_check(id, kwargs).unwrap().follows(text)
}

#[test]
fn there_are_58_and_one_of_them_cannot_be_checked() {
    let instructions = instructions();
    let mut ids: Vec<_> = instructions.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 57);
    for (id, kwargs) in &instructions {
        assert!(make_check(id, kwargs).is_ok(), "{id}");
    }
    let error = make_check("words:start_verb", &json!({})).err().unwrap();
    assert!(matches!(&error, CheckError::Unavailable { id, .. } if id == "words:start_verb"), "{error}");
    assert!(error.to_string().contains("tagger"), "{error}");
    for id in ["", "count", "count:", "count:words", "words:Alphabet", "punctuation:no_comma", "custom:x:y"] {
        assert!(check(id, &Map::new(), None).is_none(), "{id:?}");
    }
}

#[test]
fn an_invalid_parameter_is_named() {
    for (id, kwargs) in instructions() {
        let kwargs = kwargs.as_object().unwrap();
        for (name, good) in kwargs {
            let wrong = [Value::Null, json!(true), json!(["a"]), json!({"a": 1})];
            let other = if good.is_string() { vec![json!(3.0)] } else { vec![json!("3"), json!("")] };
            for bad in wrong.into_iter().chain(other) {
                let mut kwargs = kwargs.clone();
                kwargs.insert(name.clone(), bad.clone());
                let error = check(id, &kwargs, None).unwrap().err();
                let Some(CheckError::Parameter { id: at, name: parameter, problem }) = error else {
                    panic!("{id}: {name} = {bad}: {error:?}");
                };
                assert_eq!((at.as_str(), parameter), (id, name.as_str()));
                assert!(!problem.is_empty());
            }
            let mut kwargs = kwargs.clone();
            kwargs.remove(name);
            let error = check(id, &kwargs, None).unwrap().err().unwrap().to_string();
            assert_eq!(error, format!("instruction `{id}`: parameter `{name}` is missing"));
        }
    }
}

#[test]
fn values_that_the_official_program_would_replace_are_rejected() {
    for (id, kwargs, problem) in [
        ("count:numbers", json!({"N": -1.0}), "is negative"),
        ("count:words_japanese", json!({"N": 0}), "is zero"),
        ("ratio:overlap", json!({"reference_text": "abc", "percentage": -3}), "is negative"),
        ("sentence:keyword", json!({"word": "", "N": 1}), "is empty"),
        ("words:keywords_specific_position", json!({"keyword": "a", "n": 0, "m": 1}), "is below 1"),
        (
            "words:keywords_specific_position",
            json!({"keyword": "a", "n": 1.5, "m": 1}),
            "is not a whole number",
        ),
        ("repeat:repeat_change", json!({"prompt_to_repeat": ""}), "is empty"),
        (
            "repeat:repeat_span",
            json!({"prompt_to_repeat": "abc", "n_start": 1e300, "n_end": 2}),
            "is not a whole number",
        ),
    ] {
        let error = make_check(id, &kwargs).err().unwrap().to_string();
        assert!(error.ends_with(problem), "{id} {kwargs}: {error}");
    }
}

#[test]
fn whole_numbers_may_be_floats() {
    for (id, kwargs, text, expected) in [
        ("count:numbers", json!({"N": 2}), "7 and 24", true),
        ("count:numbers", json!({"N": 2.0}), "7 and 24", true),
        ("count:numbers", json!({"N": 2.5}), "7 and 24", false),
        ("count:unique_word_count", json!({"N": 1.5}), "a b", true),
        (
            "words:keywords_specific_position",
            json!({"keyword": "Word", "n": 1.0, "m": 2.0}),
            "one word here.",
            true,
        ),
        (
            "repeat:repeat_span",
            json!({"prompt_to_repeat": "Say a word.", "n_start": 4.0, "n_end": 9.0}),
            "A WORD",
            true,
        ),
        ("ratio:stop_words", json!({"percentage": 50.0}), "the harbour", true),
        ("ratio:stop_words", json!({"percentage": 49.9}), "the harbour", false),
        ("ratio:stop_words", json!({"percentage": 100}), "...", false),
        // Words are runs of word characters: `don` and `t` are both on the list, as is every other word here.
        ("ratio:stop_words", json!({"percentage": 99}), "don't THE he'll", false),
    ] {
        assert_eq!(follows(id, &kwargs, text), expected, "{id} {kwargs} {text:?}");
    }
}

/// Generates texts with many special cases.
fn awkward_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-eA-E]{1,6}",
        3 => "[ \n\t.,!?;:'\"*()-]{1,3}",
        1 => "\\PC{1,3}",
        1 => ".{0,3}",
        1 => prop::sample::select(vec![
            "Question 1", "A) x", "Zimbabwe", "<i>", "</i>", "<em>", "?!", "\u{1c}", "\r", "\u{301}", "🎂", "お",
            "Emma", "14", "1800-01-01", "ID,Country,City,Year,Count\n", "bald eagle", "‽", "\u{1f3fd}", "İ", "ſ", "ß",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_texts_are_checked(text in awkward_text()) {
        for (id, kwargs) in instructions() {
            follows(id, &kwargs, &text);
        }
    }

    #[test]
    fn arbitrary_parameters_are_accepted_or_rejected(text in awkward_text(), number in any::<f64>(), span in any::<(i64, i64)>()) {
        for (id, kwargs) in instructions() {
            let mut kwargs = kwargs.as_object().unwrap().clone();
            for (name, value) in &mut kwargs {
                *value = match (value.is_string(), name.as_str()) {
                    (true, _) => json!(text),
                    (false, "n_start") => json!(span.0),
                    (false, "n_end") => json!(span.1),
                    (false, _) => json!(number),
                };
            }
            if let Ok(check) = check(id, &kwargs, None).unwrap() {
                check.follows(&text);
            }
        }
    }

    #[test]
    fn integers_and_equal_floats_give_the_same_result(number in 0_u16..40, text in awkward_text()) {
        for (id, kwargs) in instructions() {
            let with = |number: Value| {
                let mut kwargs = kwargs.as_object().unwrap().clone();
                for value in kwargs.values_mut().filter(|value| value.is_number()) {
                    *value = number.clone();
                }
                check(id, &kwargs, None).unwrap().map(|check| check.follows(&text))
            };
            prop_assert_eq!(with(json!(number)), with(json!(f64::from(number))), "{}", id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A response that follows an instruction strictly still follows it loosely with a line before it, after it or
    /// both.
    #[test]
    fn a_line_around_a_response_does_not_matter(text in awkward_text()) {
        let text = crate::python::strip(&text);
        for (id, kwargs) in instructions() {
            let row = json!({"instruction_id_list": [id], "kwargs": [kwargs]});
            let instructions = Instructions::from_row(row.as_object().unwrap(), check).ok().unwrap();
            let plain = instructions.check(text);
            prop_assert!(plain.loose[0] || !plain.strict[0]);
            for around in [format!("Sure:\n{text}"), format!("{text}\nDone."), format!("Sure:\n{text}\nDone.")] {
                prop_assert!(instructions.check(&around).loose[0] || !plain.strict[0], "{} {:?}", id, around);
            }
        }
    }
}

/// This would not finish in time if checks took quadratic time.
#[test]
fn long_replies_take_linear_time() {
    const PIECES: [&str; 12] = [
        "\n",
        "a.",
        "(",
        "\"'",
        "  \n \n",
        "Question 1\n",
        "*-",
        "a\"\"\"b,",
        "Emma",
        "<i>x</em>",
        "?!",
        "word ",
    ];
    let repeated = |piece: &str, bytes: usize| piece.repeat(bytes / piece.len());
    let mut texts: Vec<String> = PIECES.iter().map(|piece| repeated(piece, 1 << 17)).collect();
    texts.push(PIECES.iter().map(|piece| repeated(piece, (1 << 20) / PIECES.len())).collect());
    for text in &texts {
        for (id, kwargs) in instructions() {
            follows(id, &kwargs, text);
        }
    }
}
