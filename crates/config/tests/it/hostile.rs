//! Tests with hostile files. Reading a file never panics, and memory stays bounded, whatever the
//! file contains.

use bywash_config::{Config, Problems, example};
use bywash_terminal::text::is_unsafe;

fn read(text: &str) -> Option<Problems> {
    let problems = Config::parse(text, "bywash.toml").err();
    if let Some(problems) = &problems {
        assert!(!problems.is_empty() && !problems.to_string().is_empty());
    }
    problems
}

#[test]
fn a_file_cut_anywhere_is_read_without_a_panic() {
    let text = example();
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        read(&text[..end]);
    }
}

/// A pseudo-random generator (an LCG with Knuth's constants), so that failures are reproducible.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn garbage_is_read_without_a_panic() {
    let words = [
        "version",
        "class",
        "upstream",
        "scheduler",
        ".",
        "=",
        "[",
        "]",
        "[[",
        "\"",
        "'''",
        "\n",
        " ",
        "{",
        "}",
        ",",
        "1",
        "-",
        "1e9",
        "true",
        "\u{1b}",
        "é",
        "\u{202e}",
        "𝄞",
        "\r\n",
        "#",
        "match",
        "\"GET /\"",
        "99999999999999999999",
        "nan",
        "0x",
        "2020-01-01",
        "\"20s\"",
        "other",
        "\0",
    ];
    for seed in 0..3000 {
        let mut dice = Dice(seed);
        let length = dice.below(60);
        let text: String = (0..length).map(|_| words[dice.below(words.len())]).collect();
        read(&text);
    }
}

#[test]
fn a_mutilated_file_is_read_without_a_panic() {
    let example = example();
    let lines: Vec<&str> = example.lines().filter(|line| !line.starts_with('#')).collect();
    for seed in 0..600 {
        let mut dice = Dice(seed);
        let mut text: Vec<char> = lines.join("\n").chars().collect();
        for _ in 0..=dice.below(8) {
            let (at, from) = (dice.below(text.len()), dice.below(text.len()));
            text[at] = text[from];
        }
        read(&text.iter().collect::<String>());
    }
}

fn unknown_keys(count: usize) -> String {
    (0..count).map(|i| format!("key{i} = 1")).collect::<Vec<_>>().join("\n")
}

#[test]
fn only_so_many_problems_are_listed_and_the_others_counted() {
    let text = unknown_keys(2000);
    let problems = read(&text).unwrap();
    assert_eq!(problems.iter().count(), Problems::MOST);
    // The two required keys are missing as well, so there are two more problems.
    assert_eq!(problems.len(), 2002);
    assert!(problems.to_string().ends_with("and 1902 more in bywash.toml\n"), "{problems}");
}

#[test]
fn the_problems_listed_are_the_first_of_the_file() {
    let text = unknown_keys(500);
    let problems = read(&text).unwrap();
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert!(lines.is_sorted() && *lines.last().unwrap() <= 100, "{lines:?}");
}

#[test]
fn a_file_that_is_too_large_is_not_even_parsed() {
    let problems = read(&"#".repeat(1024 * 1024 + 1)).unwrap();
    assert_eq!(problems.iter().next().unwrap().code, "E000");
}

#[test]
fn deep_nests_and_long_lines_are_borne() {
    let n = 200_000;
    let texts = [
        format!("{}a=1", "a.".repeat(n)),
        format!("a={}", "[".repeat(n)),
        format!("a={}", "{a=".repeat(n)),
        format!("[{}a]", "a.".repeat(n)),
        "]\n".repeat(n),
        "a=1\n".repeat(n / 4),
        format!("{} = 1", "k".repeat(n)),
        format!("mode = \"{}\"", "x".repeat(n)),
    ];
    for text in texts {
        let drawing = read(&text).unwrap().to_string();
        assert!(drawing.len() < 200_000, "{} bytes of drawing", drawing.len());
    }
}

#[test]
fn neither_text_nor_name_can_command_a_terminal() {
    let escaped = "mode = \"\\u001b[31mred\"\n\"\\u009b\" = 1\n";
    let text = format!("{escaped}x = \u{1b}[2J\u{202e}\r\r\n[class.\"\u{7f}\"]\n");
    let problems = Config::parse(&text, "evil\u{1b}]0;x\u{7}.toml").unwrap_err();
    let drawing = problems.to_string();
    assert!(!drawing.contains(|c: char| c != '\n' && is_unsafe(c)), "{drawing:?}");
    for problem in &problems {
        assert!(!problem.message.contains(is_unsafe), "{problem:?}");
        assert!(!problem.help.iter().any(|help| help.contains(is_unsafe)), "{problem:?}");
    }
}

#[test]
fn a_missing_file_and_a_folder_are_problems_like_others() {
    for path in ["/nowhere/bywash.toml", env!("CARGO_MANIFEST_DIR")] {
        let problems = Config::read(path).unwrap_err();
        assert_eq!(problems.iter().next().unwrap().code, "E000");
        assert!(problems.to_string().contains("cannot read"));
    }
}
