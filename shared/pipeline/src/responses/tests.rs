use super::*;
use bench_domain::Usage;

fn text(responses: &RecordedResponses, benchmark: &str, item: &str, sample: u32) -> Option<String> {
    responses.lookup(benchmark, &[item], sample, None).map(|answer| answer.text)
}

#[test]
fn the_more_specific_line_wins() {
    let responses = RecordedResponses::parse(
        "\u{feff}{\"item_id\":\"q1\",\"response\":\"any\"}\r\n\n\
         {\"id\":\"q1\",\"sample\":1,\"response\":\"second\"}\n\
         {\"item_id\":\"q1\",\"benchmark\":\"mmlu_pro\",\"response\":\"mmlu\"}\n\
         {\"item_id\":7,\"benchmark\":\"aime_2025\",\"sample\":0,\"response\":\"\"}\n",
    )
    .unwrap();
    assert_eq!(responses.len(), 4);
    assert_eq!(text(&responses, "gpqa", "q1", 0).as_deref(), Some("any"));
    assert_eq!(text(&responses, "gpqa", "q1", 1).as_deref(), Some("second"));
    assert_eq!(text(&responses, "mmlu_pro", "q1", 1).as_deref(), Some("mmlu"));
    assert_eq!(text(&responses, "aime_2025", "7", 0).as_deref(), Some(""));
    assert_eq!(text(&responses, "aime_2025", "7", 1), None);
    assert_eq!(text(&responses, "gpqa", "7", 0), None);
    assert_eq!(text(&responses, "gpqa", "q2", 0), None);
}

#[test]
fn provider_fields_are_kept() {
    let line = r#"{"item_id":"a","response":"x","reasoning":"r","finish_reason":"length",
        "usage":{"prompt_tokens":2,"completion_tokens":3},"prompt":"ignored"}"#;
    let answer =
        RecordedResponses::parse(&line.replace('\n', "")).unwrap().lookup("b", &["a"], 0, None).unwrap();
    assert_eq!((answer.finish, answer.reasoning.as_deref()), (Finish::Length, Some("r")));
    assert_eq!(answer.usage, Some(Usage::counted(2, 3, 0)));
}

#[test]
fn an_item_may_have_other_names() {
    let responses = RecordedResponses::parse(
        "{\"id\":\"901\",\"response\":\"by number\"}\n{\"id\":\"discs\",\"sample\":1,\"response\":\"by name\"}",
    )
    .unwrap();
    let by = |ids: &[&str], sample| responses.lookup("scicode", ids, sample, None).map(|answer| answer.text);
    assert_eq!(by(&["0", "901"], 0).as_deref(), Some("by number"));
    assert_eq!(by(&["discs", "901"], 0).as_deref(), Some("by number"));
    assert_eq!(by(&["discs", "901"], 1).as_deref(), Some("by name"));
    assert_eq!(by(&["901", "discs"], 1).as_deref(), Some("by name"), "it is for this sample");
    assert_eq!(by(&["0"], 0), None);
    assert_eq!(by(&[], 0), None);
}

#[test]
fn each_step_has_its_response() {
    let responses = RecordedResponses::parse(
        "{\"id\":76,\"responses\":[\"one\",\"two\",null,\"four\"],\"usage\":{\"prompt_tokens\":2}}\n\
         {\"id\":76,\"sample\":1,\"step\":\"76.2\",\"response\":\"other two\",\"reasoning\":\"r\"}\n\
         {\"id\":77,\"step\":\"77.10\",\"response\":\"ten\"}\n{\"id\":77,\"step\":\"77.1\",\"response\":\"one\"}\n\
         {\"id\":77,\"responses\":[\"listed\"]}\n{\"id\":78,\"response\":\"whole\"}",
    )
    .unwrap();
    assert_eq!(responses.len(), 8, "each text counts, a given step does not");
    let at = |id: &str, sample, step| responses.lookup("scicode", &[id], sample, Some(step));
    let text = |id: &str, sample, step| at(id, sample, step).map(|answer| answer.text);
    assert_eq!(text("76", 0, ("76.1", 0)).as_deref(), Some("one"));
    assert_eq!(text("76", 0, ("76.4", 2)).as_deref(), Some("four"), "76.3 is given");
    assert_eq!(text("76", 0, ("76.5", 3)), None);
    assert_eq!(text("76", 1, ("76.2", 1)).as_deref(), Some("other two"));
    assert_eq!(text("76", 1, ("76.1", 0)).as_deref(), Some("one"));
    assert_eq!(at("76", 1, ("76.2", 1)).unwrap().reasoning.as_deref(), Some("r"));
    assert!(at("76", 0, ("76.1", 0)).unwrap().usage_raw.is_none(), "it is that of all steps");
    assert_eq!(text("77", 0, ("77.10", 4)).as_deref(), Some("ten"));
    assert_eq!(text("77", 0, ("77.1", 0)).as_deref(), Some("one"), "a step's line wins");
    assert_eq!(text("77", 0, ("77.2", 0)).as_deref(), Some("listed"));
    assert_eq!(text("78", 0, ("78.1", 0)), None, "no response to the whole is one to a step");
    assert_eq!(responses.lookup("scicode", &["76"], 0, None), None);
}

#[test]
fn null_means_no_answer() {
    let responses = RecordedResponses::parse(
        "{\"id\":\"a\",\"response\":null,\"reasoning\":\"hm\"}\n\
         {\"id\":\"76\",\"response\": null ,\"usage\":{\"prompt_tokens\":2}}\n\
         {\"id\":\"76\",\"step\":\"76.2\",\"response\":\"two\"}\n\
         {\"id\":\"77\",\"step\":\"77.1\",\"response\":null}\n\
         {\"id\":\"78\",\"response\":null,\"responses\":[\"one\"]}",
    )
    .unwrap();
    let answer = responses.lookup("b", &["a"], 0, None).unwrap();
    assert_eq!((answer.text.as_str(), answer.reasoning.as_deref()), ("", Some("hm")));
    let step = |id: &str, name: &str| responses.lookup("b", &[id], 0, Some((name, 0)));
    let text = |id: &str, name: &str| step(id, name).map(|answer| answer.text);
    assert_eq!(text("76", "76.1").as_deref(), Some(""), "no answer to any step");
    assert!(step("76", "76.1").unwrap().usage.is_none(), "it is that of all steps");
    assert_eq!(text("76", "76.2").as_deref(), Some("two"), "a step's line wins");
    assert_eq!((text("77", "77.1").as_deref(), text("77", "77.2")), (Some(""), None));
    assert_eq!(text("78", "78.1").as_deref(), Some("one"));
}

#[test]
fn items_are_listed_as_they_are_named() {
    let responses = RecordedResponses::parse(
        "{\"id\":\"b\",\"sample\":1,\"response\":\"\"}\n{\"id\":7,\"response\":\"\"}\n\
         {\"id\":\"b\",\"sample\":0,\"response\":\"\"}\n\
         {\"id\":\"b\",\"benchmark\":\"hle\",\"response\":\"\"}\n{\"id\":\"#7\",\"response\":\"\"}",
    )
    .unwrap();
    let named = |id, benchmark, line, lines| NamedItem { id, benchmark, line, lines };
    assert_eq!(
        responses.named_items(),
        [
            named("b", None, 1, 2),
            named("7", None, 2, 1),
            named("b", Some("hle"), 4, 1),
            named("#7", None, 5, 1)
        ]
    );
    assert_eq!(responses.find_conflict("hle", "7", "#7"), Some((2, 5)));
    assert_eq!(responses.find_conflict("hle", "b", "#7"), None, "another sample");
    assert_eq!(responses.find_conflict("hle", "b", "none"), None);
}

#[test]
fn responses_to_samples_that_a_run_lacks_are_found() {
    let responses = RecordedResponses::parse(
        "{\"id\":\"b\",\"sample\":2,\"response\":\"\"}\n{\"id\":7,\"response\":\"\"}\n\
         {\"id\":\"a\",\"sample\":1,\"response\":\"\"}\n\
         {\"id\":\"a\",\"sample\":4,\"benchmark\":\"hle\",\"response\":\"\"}",
    )
    .unwrap();
    let excess = |lines, line, id, samples| Some(ExcessResponses { lines, line, id, samples });
    assert_eq!(responses.find_excess(|_| Some(1)), excess(3, 1, "b", 5));
    assert_eq!(responses.find_excess(|_| Some(4)), excess(1, 4, "a", 5));
    assert_eq!(responses.find_excess(|_| Some(5)), None);
    let without_hle = |name: Option<&str>| name.is_none().then_some(2);
    assert_eq!(responses.find_excess(without_hle), excess(1, 1, "b", 3));
}

#[test]
fn a_lone_surrogate_is_reported() {
    let problem = |fields: &str| {
        RecordedResponses::parse(&format!("{{\"id\":\"a\",{fields}}}"))
            .map_err(|error| error.problem)
            .map(|_| ())
    };
    for (fields, field, escape) in [
        (r#""response":"cut \ud83d""#, "`response`", r"`\ud83d`"),
        (r#""response":"\ud83d\ude00 \\\ude00 x""#, "`response`", r"`\ude00`"),
        (r#""response":"\uD83D\n\ude00""#, "`response`", r"`\uD83D`"),
        (r#""responses":["\u00e9","\udfff"]"#, "`responses`", r"`\udfff`"),
        (r#""response":"x","step":"\udabc""#, "`step`", r"`\udabc`"),
    ] {
        let error = problem(fields).unwrap_err();
        assert!(error.starts_with(&format!("{field} has the escape {escape} without")), "{error}");
    }
    assert_eq!(problem(r#""response":"\ud83d\ude00 \\ud83d é\\""#), Ok(()));
    assert_eq!(problem(r#""response":["\ud83d\ude00"]"#).unwrap_err(), "`response` is not a string");
}

#[test]
fn a_bad_line_is_named() {
    let problem = |line: &str| {
        let error =
            RecordedResponses::parse(&format!("{{\"id\":\"ok\",\"response\":\"\"}}\n{line}")).unwrap_err();
        assert_eq!(error.line, 2);
        error.problem
    };
    assert!(problem("{\"id\":\"a\",").contains("column"));
    assert!(problem("[1]").contains("not an object"));
    assert!(problem("{\"response\":\"x\"}").contains("no `item_id`"));
    assert!(problem("{\"id\":1.5,\"response\":\"x\"}").contains("whole number"));
    assert!(problem("{\"id\":\"a\"}").contains("no `response`"));
    assert!(problem("{\"id\":\"a\",\"response\":5}").contains("not a string"));
    assert!(problem("{\"id\":\"ok\",\"response\":\"again\"}").contains("line 1"));
    assert!(problem("{\"id\":\"a\",\"responses\":\"x\"}").contains("list of texts"));
    assert!(problem("{\"id\":\"a\",\"responses\":[\"x\",1]}").contains("list of texts"));
    assert!(problem("{\"id\":\"a\",\"responses\":[],\"response\":\"x\"}").contains("both"));
    assert!(problem("{\"id\":\"a\",\"responses\":[],\"step\":\"1\"}").contains("`step` goes with"));
    assert!(problem("{\"id\":\"a\",\"response\":\"x\",\"step\":[1]}").contains("`step` is not a string"));
    for number in ["0", "-1", "76.1"] {
        let line = format!("{{\"id\":\"a\",\"response\":\"x\",\"step\":{number}}}");
        assert!(problem(&line).starts_with("`step` is a number: give the step's name as a text"));
    }
    assert!(problem("{\"id\":\"ok\",\"responses\":[]}").contains("line 1"));
    assert!(RecordedResponses::parse("").unwrap().is_empty());
}

#[test]
fn a_list_of_predictions_is_read() {
    let list = "\u{feff}[\n  {\"instance_id\": \"instance_a\", \"patch\": \"diff\\n\", \"prefix\": \"gold\"},\n\
                  {\"instance_id\": \"instance_b\", \"model_patch\": \"own\", \"patch\": \"other\"},\n\
                  {\"instance_id\": \"instance_c\", \"model_patch\": null}\n]\n";
    let lines = "{\"instance_id\": \"instance_a\", \"patch\": \"diff\\n\"}\n\
                 {\"instance_id\": \"instance_b\", \"model_patch\": \"own\"}\n\
                 {\"instance_id\": \"instance_c\", \"model_patch\": \"\"}\n";
    for file in [list, lines] {
        let responses = RecordedResponses::parse(file).unwrap();
        assert_eq!(responses.len(), 3);
        for (item, expected) in [("instance_a", "diff\n"), ("instance_b", "own"), ("instance_c", "")] {
            assert_eq!(text(&responses, "swe_bench_pro", item, 0).as_deref(), Some(expected));
            assert_eq!(text(&responses, "mmlu_pro", item, 0), None);
        }
    }
    for (file, line, part) in [
        ("[{\"instance_id\": \"a\", \"patch\": \"x\"}, {\"patch\": \"x\"}]", 2, "no `item_id`"),
        ("[{\"instance_id\": \"a\", \"patch\": 7}]", 1, "not a string"),
        ("[{\"instance_id\": \"a\"}]", 1, "no `response`"),
        (
            "[{\"instance_id\": \"a\", \"patch\": \"\"}, {\"instance_id\": \"a\", \"patch\": \"\"}]",
            2,
            "same item",
        ),
        ("[1]", 1, "not an object"),
        ("[\n{", 2, "list of predictions"),
    ] {
        let error = RecordedResponses::parse(file).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.problem.contains(part), "{error}");
    }
}
