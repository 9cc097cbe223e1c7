//! Variables of a task's environment, and the templates that take values from an order.

use std::collections::BTreeMap;

/// Value of a variable: a text, or the name of a variable of the order.
///
/// A template is the whole value: `${NAME}` or `${NAME:-DEFAULT}`. Everything else is a text, even if it contains `${`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// Text that is used as it is.
    Text(String),
    /// Value of a variable of the order.
    Variable {
        /// Name of the order's variable.
        name: String,
        /// Value if the order doesn't have the variable.
        default: Option<String>,
    },
}

impl Template {
    /// Parses a value.
    pub fn parse(value: &str) -> Self {
        let text = || Self::Text(value.to_owned());
        let Some(inner) = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
            return text();
        };
        let (name, default) = match inner.split_once(':') {
            None => (inner, None),
            Some((name, rest)) => match rest.strip_prefix('-') {
                Some(default) => (name, Some(default.to_owned())),
                None => return text(),
            },
        };
        // A default of several lines isn't a template for the format's own program either.
        if name.is_empty() || name.contains('}') || default.as_ref().is_some_and(|text| text.contains('\n')) {
            return text();
        }
        Self::Variable { name: name.to_owned(), default }
    }

    /// Returns the value, from the order's variables or the default only.
    ///
    /// # Errors
    /// If the order doesn't have the variable and there is no default.
    pub fn resolve(&self, given: &BTreeMap<String, String>) -> Result<String, MissingVariable> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Variable { name, default } => {
                let value = given.get(name).or(default.as_ref());
                value.cloned().ok_or_else(|| MissingVariable { name: name.clone() })
            }
        }
    }
}

/// Variables of an environment or a command by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(pub BTreeMap<String, Template>);

impl Variables {
    /// Returns all values, from the order's variables and defaults only.
    ///
    /// # Errors
    /// If a variable without default is missing from the order. The first one by name of the task's variable is named.
    pub fn resolve(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, MissingVariable> {
        self.0.iter().map(|(name, value)| Ok((name.clone(), value.resolve(given)?))).collect()
    }

    /// Returns the names of the order's variables.
    pub fn of_order(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(|value| match value {
            Template::Variable { name, .. } => Some(name.as_str()),
            Template::Text(_) => None,
        })
    }

    /// Returns the names of the order's variables that have no default.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(|value| match value {
            Template::Variable { name, default: None } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Adds the variables of another set, which win.
    pub(crate) fn extended_by(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.clone());
        Self(all)
    }
}

/// Failure to resolve a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the task needs the variable `{name}`; give it with the order, as the option `env.{name}`, or add a default to the task: `${{{name}:-VALUE}}`"
)]
pub struct MissingVariable {
    /// Name of the order's variable.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, default: Option<&str>) -> Template {
        Template::Variable { name: name.to_owned(), default: default.map(str::to_owned) }
    }

    #[test]
    fn only_whole_values_are_templates() {
        for (value, expected) in [
            ("${KEY}", variable("KEY", None)),
            ("${KEY:-}", variable("KEY", Some(""))),
            ("${KEY:-a:-b}", variable("KEY", Some("a:-b"))),
            ("${KEY:-}}", variable("KEY", Some("}"))),
            ("${A B}", variable("A B", None)),
        ] {
            assert_eq!(Template::parse(value), expected, "{value}");
        }
        for value in
            ["", "$KEY", "x${KEY}", "${KEY}x", "${}", "${KEY:?no}", "${KEY:-a\nb}", "${A}${B}", "$${KEY}"]
        {
            assert_eq!(Template::parse(value), Template::Text(value.to_owned()), "{value}");
        }
    }

    #[test]
    fn values_come_from_the_order_only() {
        let given = BTreeMap::from([("KEY".to_owned(), "given".to_owned())]);
        assert_eq!(Template::parse("${KEY:-default}").resolve(&given).unwrap(), "given");
        assert_eq!(Template::parse("${OTHER:-default}").resolve(&given).unwrap(), "default");
        // `PATH` is a variable of every process.
        let missing = Template::parse("${PATH}").resolve(&given).unwrap_err();
        assert_eq!(missing.name, "PATH");
        assert!(missing.to_string().ends_with("`${PATH:-VALUE}`"), "{missing}");
    }

    #[test]
    fn required_variables_have_no_default() {
        let values = [("A", "${X}"), ("B", "${Y:-1}"), ("C", "text")];
        let own = Variables(values.map(|(name, value)| (name.to_owned(), Template::parse(value))).into());
        assert_eq!(own.required().collect::<Vec<_>>(), ["X"]);
        let other = Variables([("A".to_owned(), Template::parse("1"))].into());
        assert_eq!(own.extended_by(&other).required().count(), 0);
    }
}
