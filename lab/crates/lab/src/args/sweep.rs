//! The arguments of `lab sweep`.

use std::path::PathBuf;

use bywash_scenario::Setting;

use super::Narrow;

const EXAMPLES: &str = "\
Examples:
  bywash lab sweep papers/1-lifo-pri/scenarios/paper-1.toml --rho 2 --vary client.patience.mean=5s,10s,20s,40s
  bywash lab sweep papers/1-lifo-pri/scenarios/paper-1.toml --vary servers.workers=1,4 --vary client.retries=0,2
  bywash lab sweep papers/1-lifo-pri/scenarios/paper-1.toml --vary policy.session-first.capacity=50,100,200

KEY is any key of the scenario file. Name the class or policy in it, as in class.main.service.mean.
Every combination is played with every policy.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sweep {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Key to vary and its values; repeat the option to play all combinations of several keys
    #[arg(long, required = true, value_name = "KEY=V1,V2,…")]
    pub(crate) vary: Vec<Vary>,
    #[command(flatten)]
    pub(crate) narrow: Narrow,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// A key to vary, with the values that it takes.
#[derive(Clone, Debug)]
pub(crate) struct Vary {
    pub(crate) key: String,
    pub(crate) values: Vec<String>,
}

impl std::str::FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let setting: Setting = text.parse()?;
        let values: Vec<String> = parts(&setting.value).map(|part| part.trim().into()).collect();
        if let Some(value) = values.iter().find(|value| value.is_empty()) {
            return Err(format!("`{text}` has an empty value{value}"));
        }
        if let Some((_, twice)) = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v))
        {
            return Err(format!("`{text}` has `{twice}` twice"));
        }
        Ok(Self { key: setting.key, values })
    }
}

/// Splits a text at the commas that are outside brackets and quotes.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut quoted) = (0_i32, false);
    text.split(move |c| {
        match c {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => (),
        }
        c == ',' && depth == 0 && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_between_commas_that_are_not_in_brackets_or_quotes() {
        let values = |text: &str| text.parse::<Vary>().map(|vary| vary.values);
        assert_eq!(values("a.b=1, 2,3s").unwrap(), ["1", "2", "3s"]);
        let law = r#"client.patience={ mean = "20s", shape = "none" },{ shape = "a,b" }"#;
        assert_eq!(values(law).unwrap().len(), 2);
        for wrong in ["a", "a=", "a=1,,2", "a=1,", "=1", "a=1,2,1"] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }
}
