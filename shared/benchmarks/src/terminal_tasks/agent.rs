//! The agent of a run of terminal tasks, with its options, as options of the benchmark.

use std::collections::BTreeMap;

use bench_agents::bash::{BashSettings, prompt_parts};
use bench_agents::terminus2::{
    OFFICIAL_PROGRAM, OfficialFile, ReplyFormat, Terminus2Settings, Terminus2Texts, official_template,
};
use bench_domain::Agent;
use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec, WheelSpec};

use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};
use crate::options::{OptionError, OptionMetadata, Options};

/// Name of the option with the agent, and beginning of the names of the agent's own options.
const AGENT: &str = "agent";
const AGENT_OPTION: &str = "agent.";
/// Option of the agent `custom` with the content hash of its files.
pub const CUSTOM_CONTENT: &str = "content_hash";
/// Working folder of `bash`, where only the validity of its options matters.
const ANY_FOLDER: &str = "/";

/// Wheel that contains the official texts of `terminus-2`.
pub const OFFICIAL_WHEEL: WheelSpec = WheelSpec {
    package: "harbor",
    version: "0.25.0",
    file: "harbor-0.25.0-py3-none-any.whl",
    sha256: "51923ac567fc57b03279e93468b105f689628bcac2cd3d541d4e44aa5c0ec309",
};

const PROGRAM: TemplateSpec = text("terminus_2_program", OFFICIAL_PROGRAM);
/// Official texts of `terminus-2` with replies in JSON.
static JSON_TEXTS: [TemplateSpec; 2] =
    [text("terminus_2_template", official_template(ReplyFormat::Json)), PROGRAM];
/// Official texts of `terminus-2` with replies in XML.
static XML_TEXTS: [TemplateSpec; 2] =
    [text("terminus_2_template", official_template(ReplyFormat::Xml)), PROGRAM];

/// Option with the agent.
pub(crate) const OPTION: OptionMetadata = OptionMetadata {
    name: AGENT,
    description: "agent: `terminus-2` types the model's keystrokes into a terminal, `bash` runs one of its commands a turn, `custom` is an uploaded program",
    default: "",
};
/// Options of the agent.
pub(crate) const OWN_OPTIONS: OptionMetadata = OptionMetadata {
    name: "agent.NAME",
    description: "option NAME of the agent, such as `max_turns`, `max_cost_usd` or `parser_name`; of `custom`, `content_hash`",
    default: "",
};

/// Texts that an agent sends to the model around a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// None: the agent asks no model.
    None,
    /// Those of `bash`, which are our own.
    Bash,
    /// Those of `terminus-2` with replies in this format.
    Terminus2(ReplyFormat),
}

impl Wording {
    pub(crate) const ALL: [Self; 4] =
        [Self::Terminus2(ReplyFormat::Json), Self::Terminus2(ReplyFormat::Xml), Self::Bash, Self::None];

    /// Returns the one of these values, in the order of [`Self::ALL`], that belongs to this wording.
    pub(crate) fn choose<T>(self, [json, xml, bash, none]: &[T; 4]) -> &T {
        match self {
            Self::Terminus2(ReplyFormat::Json) => json,
            Self::Terminus2(ReplyFormat::Xml) => xml,
            Self::Bash => bash,
            Self::None => none,
        }
    }

    /// Returns the official texts among them.
    pub(crate) fn official(self) -> &'static [TemplateSpec] {
        match self {
            Self::None | Self::Bash => &[],
            Self::Terminus2(ReplyFormat::Json) => &JSON_TEXTS,
            Self::Terminus2(ReplyFormat::Xml) => &XML_TEXTS,
        }
    }

    /// Returns the template of a run, for which these official texts were found.
    pub(crate) fn template(self, templates: &Templates) -> Template {
        let format = match self {
            Self::None => return Template::new(TemplateSource::Official, &[]),
            Self::Bash => return Template::new(TemplateSource::Own, &prompt_parts()),
            Self::Terminus2(format) => format,
        };
        let specs = self.official();
        let found: Vec<&str> =
            specs.iter().filter_map(|spec| templates.get(spec.name).map(String::as_str)).collect();
        match found.len() == specs.len() {
            true => Template::new(TemplateSource::Official, &found),
            false => Template::new(TemplateSource::Own, &Terminus2Texts::own(format).parts()),
        }
    }
}

const fn text(name: &'static str, file: OfficialFile) -> TemplateSpec {
    TemplateSpec {
        name,
        origin: TemplateOrigin::Wheel { wheel: OFFICIAL_WHEEL, path: file.path },
        part: TemplatePart::Whole,
        sha256: Some(file.sha256),
        role: TemplateRole::Wording,
    }
}

/// Agent of a run, with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    /// The agent.
    pub agent: Agent,
    /// Its options by name.
    pub options: BTreeMap<String, String>,
}

/// Returns the agent that a source of answers names, if it asks no model.
pub(crate) fn agent_without_model(source: &str) -> Option<Agent> {
    source.parse::<Agent>().ok().filter(|agent| !agent.asks_model())
}

/// Returns the agent of a run: that of its options if a model is asked, otherwise the one that its source of answers names.
pub fn agent_choice(source: &str, options: Option<&Options>) -> AgentChoice {
    let own: BTreeMap<String, String> = options
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.strip_prefix(AGENT_OPTION)?.to_owned(), value.clone())))
        .collect();
    if let Some(agent) = agent_without_model(source) {
        return AgentChoice { agent, options: own };
    }
    let named = options.and_then(|options| options.get(AGENT)?.parse().ok());
    AgentChoice { agent: named.unwrap_or(Agent::DEFAULT), options: own }
}

/// Returns the content hash of the custom agent that a benchmark's options name.
pub fn custom_content(options: &Options) -> Option<&str> {
    let is_custom = options.get(AGENT).is_some_and(|name| name.trim() == Agent::Custom.as_str());
    options.get(&format!("{AGENT_OPTION}{CUSTOM_CONTENT}")).map(String::as_str).filter(|_| is_custom)
}

/// Returns the options of the benchmark that stand for an agent and its options.
pub fn agent_option_names(agent: Agent, options: &BTreeMap<String, String>) -> Options {
    let own = options.iter().map(|(name, value)| (format!("{AGENT_OPTION}{name}"), value.clone()));
    // Other agents are named by the source of answers alone.
    let is_named = agent.asks_model() || agent == Agent::Custom;
    let named = is_named.then(|| (AGENT.to_owned(), agent.as_str().to_owned()));
    own.chain(named).collect()
}

/// Returns true for an option of a benchmark that chooses the agent or is one of the agent's.
pub fn is_agent_option(name: &str) -> bool {
    name == AGENT || name.starts_with(AGENT_OPTION)
}

/// Checks agent and agent's options. Returns the texts that the agent sends; `None` if the options name neither.
pub(crate) fn checked_wording(options: &Options) -> Result<Option<Wording>, OptionError> {
    if !options.keys().any(|name| is_agent_option(name)) {
        return Ok(None);
    }
    let named = options.get(AGENT).filter(|name| !name.is_empty());
    let agent = match named {
        Some(name) => name.parse::<Agent>().map_err(|unknown| OptionError(unknown.to_string()))?,
        None => Agent::DEFAULT,
    };
    let own = agent_choice("", Some(options)).options;
    if agent == Agent::Custom {
        return check_custom(&own).map(|()| Some(Wording::None));
    }
    if !agent.asks_model() {
        return Err(OptionError(format!(
            "the agent `{agent}` asks no model: order the model `{agent}` instead of this option"
        )));
    }
    let invalid = |error: bench_agents::OptionError| OptionError(error.to_string());
    if agent == Agent::Bash {
        BashSettings::parse(&own, ANY_FOLDER).map_err(invalid)?;
        return Ok(Some(Wording::Bash));
    }
    let settings = Terminus2Settings::parse(&own).map_err(invalid)?;
    Ok(Some(Wording::Terminus2(settings.format)))
}

/// Checks the options of the agent `custom`.
fn check_custom(own: &BTreeMap<String, String>) -> Result<(), OptionError> {
    let agent = Agent::Custom;
    if let Some(name) = own.keys().find(|name| *name != CUSTOM_CONTENT) {
        let name: String = name.chars().take(64).collect();
        let why = format!("the agent `{agent}` has no option `{name}`; it has `{CUSTOM_CONTENT}`");
        return Err(OptionError(why));
    }
    let is_hash = |text: &String| {
        text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match own.get(CUSTOM_CONTENT) {
        Some(hash) if is_hash(hash) => Ok(()),
        _ => Err(OptionError(format!(
            "the agent `{agent}` needs the option `{CUSTOM_CONTENT}`: the content hash of an uploaded agent, 64 lowercase \
             hexadecimal digits"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::NO_TEXT_DIGEST;

    fn options(pairs: &[(&str, &str)]) -> Options {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_wording_is_named_by_its_texts() {
        let official = JSON_TEXTS.iter().map(|spec| (spec.name.to_owned(), spec.name.to_owned()));
        let official: Templates = official.collect();
        let mut digests = std::collections::BTreeSet::new();
        for wording in Wording::ALL {
            assert_eq!(*wording.choose(&Wording::ALL), wording);
            let own = wording.template(&Templates::new());
            let expected =
                if wording == Wording::None { TemplateSource::Official } else { TemplateSource::Own };
            assert_eq!(own.source, expected, "{wording:?}");
            assert_eq!(own.digest == NO_TEXT_DIGEST, wording == Wording::None, "{wording:?}");
            let asks_official = matches!(wording, Wording::Terminus2(_));
            let found = wording.template(&official);
            assert_eq!(found.source == TemplateSource::Official, asks_official || wording == Wording::None);
            digests.insert(own.digest);
        }
        assert_eq!(digests.len(), Wording::ALL.len());
    }

    #[test]
    fn the_agent_is_an_option_of_the_benchmark() {
        let all = options(&[("agent", "bash"), ("agent.max_turns", "3"), ("env.A", "1")]);
        let choice = agent_choice("openrouter", Some(&all));
        assert_eq!((choice.agent, choice.options), (Agent::Bash, options(&[("max_turns", "3")])));
        assert_eq!(agent_choice("openrouter", None).agent, Agent::Terminus2);
        assert_eq!(agent_choice("nop", Some(&all)).agent, Agent::Nop);
        let named = agent_option_names(Agent::Bash, &options(&[("max_turns", "3")]));
        assert_eq!(named, options(&[("agent", "bash"), ("agent.max_turns", "3")]));
        assert_eq!(
            agent_option_names(Agent::Terminus2, &Options::new()),
            options(&[("agent", "terminus-2")])
        );
        assert_eq!(agent_option_names(Agent::Oracle, &Options::new()), Options::new());
        assert_eq!(checked_wording(&options(&[("env.A", "1")])).unwrap(), None);
    }

    #[test]
    fn a_custom_agent_is_named_by_its_content() {
        let hash = "0a".repeat(32);
        let all = agent_option_names(Agent::Custom, &options(&[(CUSTOM_CONTENT, &hash)]));
        assert_eq!(all, options(&[("agent", "custom"), ("agent.content_hash", &hash)]));
        assert_eq!(custom_content(&all), Some(hash.as_str()));
        assert_eq!(custom_content(&options(&[("agent", "bash"), ("agent.content_hash", &hash)])), None);
        assert_eq!(checked_wording(&all).unwrap(), Some(Wording::None));
        let choice = agent_choice("custom", Some(&all));
        assert_eq!((choice.agent, choice.options), (Agent::Custom, options(&[(CUSTOM_CONTENT, &hash)])));
        for (given, part) in [
            (options(&[("agent", "custom")]), "needs the option `content_hash`"),
            (options(&[("agent", "custom"), ("agent.content_hash", "0A")]), "64 lowercase"),
            (options(&[("agent", "custom"), ("agent.max_turns", "3")]), "no option `max_turns`"),
        ] {
            let error = checked_wording(&given).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn options_are_checked_by_their_agent() {
        for (given, part) in [
            (options(&[("agent", "claude")]), "has no agent `claude`"),
            (options(&[("agent", "oracle")]), "asks no model"),
            (options(&[("agent", "bash"), ("agent.parser_name", "xml")]), "no option `parser_name`"),
            (options(&[("agent.max_turns", "0")]), "must be a number from 1"),
            (options(&[("agent.nope", "0")]), "has no option `nope`"),
        ] {
            let error = checked_wording(&given).unwrap_err().to_string();
            assert!(error.contains(part), "{given:?}: {error}");
        }
        let xml = checked_wording(&options(&[("agent.parser_name", "xml")])).unwrap();
        assert_eq!(xml, Some(Wording::Terminus2(ReplyFormat::Xml)));
        assert_eq!(checked_wording(&options(&[("agent", "bash")])).unwrap(), Some(Wording::Bash));
    }
}
