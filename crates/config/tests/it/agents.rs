//! Tests of `[agent.NAME]`.

use std::fs;
use std::path::PathBuf;

use bywash_config::{Config, Problems};

/// The public key of RFC 9421 §B.1.4.
const X: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";

/// A temporary file of public keys, which is removed when the test ends.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("bywash-agents-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn good(name: &str) -> Self {
        let key = format!(r#"{{"kty": "OKP", "crv": "Ed25519", "x": "{X}"}}"#);
        Self::new(name, &format!(r#"{{"keys": [{key}]}}"#))
    }

    /// Returns the table of an agent with these keys.
    fn agent(&self, name: &str) -> String {
        format!("[agent.{name}]\nkeys = \"{}\"\n", self.0.display())
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn read(agents: &str) -> Result<(Config, Problems), Problems> {
    let server = "[upstream]\nserver = \"http://127.0.0.1:3000\"\n";
    Config::parse(&format!("version = 1\n{server}{agents}"), "bywash.toml")
}

/// Returns the code, the line and the message of the file's only problem.
fn only(agents: &str) -> (&'static str, usize, String) {
    let problems = read(agents).map_or_else(|problems| problems, |(_, warnings)| warnings);
    assert_eq!(problems.len(), 1, "{agents}: {problems}");
    let problem = problems.iter().next().unwrap();
    (problem.code, problem.line, problem.message.clone())
}

#[test]
fn agents_have_keys_and_a_level() {
    let (one, two) = (
        KeyFile::good("one"),
        KeyFile::new(
            "two",
            r#"{"keys": [{"kty": "OKP",
        "crv": "Ed25519", "x": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#,
        ),
    );
    let (config, warnings) =
        read(&format!("{}level = 0\n{}", one.agent("archive"), two.agent("search"))).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    let agents: Vec<_> =
        config.agents.iter().map(|agent| (&*agent.name, agent.keys.len(), agent.level)).collect();
    assert_eq!(agents, [("archive", 1, 0), ("search", 1, 1)]);
    assert_eq!(config.agents[0].keys[0].id(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_the_reason() {
    let none = KeyFile::new("none", r#"{"keys": []}"#);
    let (code, line, message) = only(&none.agent("a"));
    assert_eq!((code, line), ("E054", 5), "{message}");
    assert!(message.contains("`agent.a.keys`: it has no Ed25519 key"), "{message}");
    let missing = "[agent.a]\nkeys = \"/nonexistent/keys\"\n";
    assert_eq!(only(missing).0, "E054");
    let (code, line, message) = only("[agent.a]\nlevel = 2\n");
    assert_eq!((code, line), ("W147", 4), "{message}");
    let good = KeyFile::good("level");
    let (code, line, message) = only(&format!("{}level = 8\n", good.agent("a")));
    assert_eq!((code, line), ("E004", 6), "{message}");
}

#[test]
fn a_key_belongs_to_one_agent() {
    let file = KeyFile::good("shared");
    let (code, line, message) = only(&format!("{}{}", file.agent("a"), file.agent("b")));
    assert_eq!((code, line), ("E145", 7), "{message}");
}

#[test]
fn without_populations_agents_have_no_effect() {
    let file = KeyFile::good("unused");
    let (code, ..) = only(&format!("[identify]\npopulations = false\n{}", file.agent("a")));
    assert_eq!(code, "W146");
    let many: Vec<String> = (0..65).map(|n| format!("[agent.a{n}]\nkeys = \"/none\"\n")).collect();
    let problems = read(&many.concat()).unwrap_err();
    assert!(problems.iter().any(|problem| problem.code == "E053"), "{problems}");
    let (code, ..) = only(&file.agent("\"not valid\""));
    assert_eq!(code, "E044");
}
