//! The query part of a pattern, after the `?`: the parameters that a request must have, with their
//! values.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::parameters::{self, Parameters, may_be_name, name_of, value_of};
use super::pattern::BadPattern;

/// The query part of a pattern, in its parsed form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Query {
    /// The required parameters with their accepted values, in the order of names.
    parameters: Vec<(String, Values)>,
    /// Whether other parameters are allowed (`...` in the pattern).
    others: bool,
}

/// The values of one parameter that a pattern accepts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Values {
    /// The values that begin with this text. An empty text accepts every value.
    Prefix(String),
    /// Only this value.
    One(String),
}

/// How the query of a request fits a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryFit {
    /// A parameter that the pattern names is missing, or has another value.
    No,
    /// The request has the parameters that the pattern names, and others that the pattern does not
    /// allow. An application that ignores those others serves the same page.
    WithOthers,
    /// The request has exactly the parameters that the pattern allows.
    Exact,
}

/// The specificity of a query pattern. Its parts are compared in this order: the number of fixed
/// values, the total number of letters of all values, the number of names, and whether other
/// parameters are excluded.
type Specificity = (usize, usize, usize, bool);

impl Query {
    /// Parses the query part of a pattern.
    pub(super) fn parse(text: &str) -> Result<Self, BadPattern> {
        let mut query = Self { parameters: Vec::new(), others: false };
        for part in text.split('&').filter(|part| !part.is_empty()) {
            if part == "..." {
                query.others = true;
                continue;
            }
            let (name, value) = part.split_once('=').unwrap_or((part, "*"));
            let name = name_of(name);
            let is_new = query.find(&name).is_none();
            if !may_be_name(&name) || !is_new || query.parameters.len() == parameters::MOST {
                return Err(BadPattern::Parameter);
            }
            query.parameters.push((name.into_owned(), Values::parse(value)?));
        }
        query.parameters.sort_unstable();
        Ok(query)
    }

    /// Returns whether the pattern names any parameter.
    pub(super) const fn names_parameters(&self) -> bool {
        !self.parameters.is_empty()
    }

    /// Returns whether applications differ on the value of a parameter that the pattern names.
    pub(super) fn is_doubtful_in(&self, given: &Parameters<'_>) -> bool {
        self.parameters.iter().any(|(name, _)| given.is_doubtful(name))
    }

    fn find(&self, name: &str) -> Option<&Values> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, values)| values)
    }

    /// Returns how a request with the parameters `given` fits. The function `given` is called only
    /// if the result depends on the parameters. A request with more parameters than are read counts
    /// as if it had all that the pattern names.
    pub(super) fn fit<'r, 't: 'r>(&self, given: impl FnOnce() -> &'r Parameters<'t>) -> QueryFit {
        if self.parameters.is_empty() && self.others {
            return QueryFit::Exact;
        }
        let given = given();
        let is_there = |(name, values): &(String, Values)| given.has(name, |one| values.take(one));
        if !given.are_too_many() && !self.parameters.iter().all(is_there) {
            QueryFit::No
        } else if self.others || given.are(self.parameters.len()) {
            QueryFit::Exact
        } else {
            QueryFit::WithOthers
        }
    }

    /// Returns whether each request with the parameters of this query also has those of the other
    /// query.
    pub(super) fn narrows(&self, other: &Self) -> bool {
        let narrows = |(name, values): &(String, Values)| {
            self.find(name).is_some_and(|here| values.contain(here))
        };
        other.parameters.iter().all(narrows)
    }

    /// Returns whether some request fits both queries.
    pub(super) fn shares(&self, other: &Self) -> bool {
        let takes = |query: &Self, (name, values): &(String, Values)| match query.find(name) {
            Some(known) => known.contain(values) || values.contain(known),
            None => query.others,
        };
        self.parameters.iter().all(|one| takes(other, one))
            && other.parameters.iter().all(|one| takes(self, one))
    }

    /// Returns the specificity of the query. The greater of two is more specific.
    pub(super) fn specificity(&self) -> Specificity {
        let values = || self.parameters.iter().map(|(_, values)| values);
        let fixed = values().filter(|values| matches!(values, Values::One(_))).count();
        let letters = values().map(|(Values::Prefix(text) | Values::One(text))| text.len()).sum();
        (fixed, letters, self.parameters.len(), !self.others)
    }

    /// Returns the same query with any other parameters allowed; `None` if it allows them already.
    pub(super) fn with_others(&self) -> Option<Self> {
        (!self.others).then(|| Self { others: true, ..self.clone() })
    }
}

impl Values {
    fn parse(text: &str) -> Result<Self, BadPattern> {
        let (text, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        if text.contains('*') {
            return Err(BadPattern::Star);
        }
        let text = value_of(text).into_owned();
        Ok(if is_prefix { Self::Prefix(text) } else { Self::One(text) })
    }

    fn take(&self, value: &str) -> bool {
        match self {
            Self::Prefix(prefix) => value.starts_with(prefix.as_str()),
            Self::One(one) => value == one,
        }
    }

    /// Returns whether these values include all values of the other set.
    fn contain(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prefix(_), Self::Prefix(text)) | (_, Self::One(text)) => self.take(text),
            (Self::One(_), Self::Prefix(_)) => false,
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sign = '?';
        for (name, values) in &self.parameters {
            write!(f, "{sign}{name}")?;
            match values {
                Values::Prefix(prefix) if prefix.is_empty() => {}
                Values::Prefix(prefix) => write!(f, "={prefix}*")?,
                Values::One(one) => write!(f, "={one}")?,
            }
            sign = '&';
        }
        match (self.parameters.is_empty(), self.others) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => f.write_str("?"),
            (false, true) => f.write_str("&..."),
        }
    }
}
