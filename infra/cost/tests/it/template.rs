//! The assumptions about an installation, compared with the template.

use bench_cost::{
    IDLE_AIM_USD, Installation, MEMORY_MB, TURNS_BATCH, WORKER_BATCH, WORKER_MB, Workload, idle,
};

fn template() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the resources of a type, each as its lines.
fn resources(kind: &str) -> Vec<String> {
    let text = template();
    let (_, text) = text.split_once("\nResources:\n").unwrap();
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let starts = line.starts_with("  ") && line.ends_with(':') && !line.starts_with("   ");
        if starts || found.is_empty() {
            found.push(String::new());
        }
        let last = found.last_mut().unwrap();
        last.push_str(line);
        last.push('\n');
    }
    let of_kind = format!("\n    Type: {kind}\n");
    found.into_iter().filter(|resource| resource.contains(&of_kind)).collect()
}

/// Returns the default of a parameter.
fn default_of(parameter: &str) -> String {
    let text = template();
    let (_, rest) = text.split_once(&format!("\n  {parameter}:\n")).unwrap();
    let line = rest.lines().find_map(|line| line.strip_prefix("    Default: ")).unwrap();
    line.trim_matches('"').to_owned()
}

#[test]
fn an_idle_installation_is_the_template() {
    let alarms = resources("AWS::CloudWatch::Alarm");
    // An alarm has one metric, or a list of them and of expressions.
    let metrics: usize = alarms.iter().map(|alarm| alarm.matches("MetricStat:").count().max(1)).sum();
    let queues: usize = resources("AWS::Serverless::Function")
        .iter()
        .map(|function| function.matches("Type: SQS").count())
        .sum();
    let dashboards = resources("AWS::CloudWatch::Dashboard");
    assert!(dashboards.iter().all(|dashboard| dashboard.contains("    Condition: HasDashboard\n")));
    assert_eq!((default_of("Alarms").as_str(), default_of("CreateDashboard").as_str()), ("true", "false"));
    let ours = Installation::OURS;
    assert_eq!(
        [metrics, queues, resources("AWS::SecretsManager::Secret").len(), resources("AWS::KMS::Key").len()]
            .map(|n| n as f64),
        [ours.alarms, ours.queues, ours.secrets, ours.keys]
    );
    assert_eq!(ours.dashboards, 0.0);
}

#[test]
fn the_aim_of_an_idle_month_is_met() {
    let usd = idle(&Installation::OURS).usd();
    assert!(usd <= IDLE_AIM_USD, "{usd}");
}

#[test]
fn batches_are_the_templates() {
    let functions = resources("AWS::Serverless::Function");
    for (name, expected) in [("Worker", WORKER_BATCH), ("Turns", TURNS_BATCH)] {
        let function =
            functions.iter().find(|function| function.starts_with(&format!("  {name}Function:\n"))).unwrap();
        let size = function.lines().find_map(|line| line.trim().strip_prefix("BatchSize: ")).unwrap();
        assert_eq!(size.parse::<f64>().unwrap(), expected, "{name}");
    }
    let reference = Workload::with_samples(1.0);
    let invocations: f64 = default_of("WorkerConcurrency").parse().unwrap();
    assert_eq!((reference.batch, reference.concurrency), (WORKER_BATCH, invocations * WORKER_BATCH));
}

#[test]
fn memory_is_the_templates() {
    let functions = resources("AWS::Serverless::Function");
    let text = template();
    let (globals, _) = text.split_once("\nResources:\n").unwrap();
    for (name, expected) in MEMORY_MB {
        let function =
            functions.iter().find(|function| function.starts_with(&format!("  {name}Function:\n"))).unwrap();
        let size = [function.as_str(), globals]
            .into_iter()
            .find_map(|text| text.lines().find_map(|line| line.trim().strip_prefix("MemorySize: ")))
            .unwrap();
        let memory = size.strip_prefix("!Ref ").map_or_else(|| size.to_owned(), default_of);
        assert_eq!(memory.parse::<f64>().unwrap(), expected, "{name}");
    }
    assert_eq!(Workload::with_samples(1.0).memory_mb, WORKER_MB);
}
