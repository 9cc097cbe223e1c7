//! Origins of runs.

use bench_domain::RunSpec;
use bench_domain::run::Owner;

use crate::StateError;
use crate::attributes::{Reader, Record, number, text};

/// Name of the attribute that contains the [`Origin`].
pub(crate) const ORIGIN: &str = "origin";
/// Name of the attribute that contains the start count of the process of a foreground run.
pub(crate) const ORIGIN_START: &str = "origin_start";
/// Name of the attribute that contains the concurrency of a foreground run.
pub(crate) const CONCURRENCY: &str = "concurrency";
const SERVER: &str = "server";
const FOREGROUND: &str = "foreground";

/// Origin of a run: the kind of process that ordered it or resumed it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A server, or a schedule of the server.
    Server,
    /// A command in the foreground.
    Foreground {
        /// Start count of the process that works on the run: the owner of the data directory.
        start: u64,
    },
}

impl Origin {
    /// Origin of a run whose command has ended. No process has this start count.
    pub const INTERRUPTED: Self = Self::Foreground { start: 0 };

    /// Reads the origin of a run.
    ///
    /// Runs of older versions have none. Runs of schedules and of callers with keys were ordered at a server. Any other
    /// run may be an abandoned one of the command line, which costs nothing until it is resumed.
    pub(crate) fn read(reader: &Reader<'_>, spec: &RunSpec) -> Result<Self, StateError> {
        Ok(match reader.maybe_text(ORIGIN) {
            Some(SERVER) => Self::Server,
            Some(_) => Self::Foreground { start: reader.number_or(ORIGIN_START, 0)? },
            None if spec.schedule.is_some() || spec.owner != Owner::Local => Self::Server,
            None => Self::INTERRUPTED,
        })
    }

    /// Sets the attributes of a new run.
    pub(crate) fn write(self, record: &mut Record) {
        record.insert(ORIGIN.into(), text(self.name()));
        record.insert(ORIGIN_START.into(), number(self.start()));
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Server => SERVER,
            Self::Foreground { .. } => FOREGROUND,
        }
    }

    /// Returns the start count of the process; 0 for a server, where any count is allowed.
    pub(crate) const fn start(self) -> u64 {
        match self {
            Self::Server => 0,
            Self::Foreground { start } => start,
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{RunId, Subset, Timestamp};
    use serde_json::json;

    use super::*;

    fn spec(more: serde_json::Value) -> RunSpec {
        let mut spec = json!({
            "id": RunId::random(),
            "model": { "id": bench_domain::ModelId::from_name("oracle", "oracle"), "provider": "oracle", "slug": "oracle" },
            "benchmarks": ["mmlu_pro"], "selected_benchmarks": null, "subset": Subset::default(),
            "owner": Owner::Local, "auth": "system", "coverage_min": 0.9, "software": "1",
            "created_at": Timestamp::from_micros(1),
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn read(record: &Record, spec: &RunSpec) -> Origin {
        Origin::read(&Reader::new(record), spec).unwrap()
    }

    #[test]
    fn an_origin_survives_its_record() {
        for origin in [Origin::Server, Origin::Foreground { start: 7 }] {
            let mut record = Record::new();
            origin.write(&mut record);
            assert_eq!(read(&record, &spec(json!({}))), origin);
        }
    }

    #[test]
    fn an_old_run_without_origin_counts_as_interrupted_unless_a_server_ordered_it() {
        let old = Record::new();
        assert_eq!(read(&old, &spec(json!({}))), Origin::Foreground { start: 0 });
        assert_eq!(read(&old, &spec(json!({ "owner": Owner::Key("k".into()) }))), Origin::Server);
        let schedule = bench_domain::ScheduleId::random();
        assert_eq!(read(&old, &spec(json!({ "schedule": schedule }))), Origin::Server);
    }
}
