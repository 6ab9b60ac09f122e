//! Tests of `bywash lab run`, which plays scenarios in real time against a shop in this process.

use bywash_shop::{Options, Shop};

use crate::binary::{bywash, finish};
use crate::folder::Folder;
use crate::sim::assert_shape;
use crate::upstream::nobody;

/// Returns a scenario in which every visitor buys within a second.
pub(crate) fn scenario() -> String {
    let stages = [
        ("main", "GET /", "browsing"),
        ("details", "GET /details?id=7", "browsing"),
        ("login", "POST /login", "transaction"),
        ("shipping", "POST /shipping", "transaction"),
        ("payment", "POST /payment", "transaction"),
        ("confirm", "POST /confirm", "transaction"),
    ];
    let class = |(i, (name, request, tier)): (usize, &(&str, &str, &str))| {
        let next = stages.get(i + 1).map_or(String::new(), |(name, ..)| format!("{name} = 1"));
        format!(
            "[[class]]\nname = \"{name}\"\nrequest = \"{request}\"\ntier = \"{tier}\"\nutility = 1\n\
             service = {{ mean = \"2ms\", shape = \"constant\" }}\nnext = {{ {next} }}\n"
        )
    };
    let classes: String = stages.iter().enumerate().map(class).collect();
    let servers = "name = \"walk\"\n[servers]\nworkers = 2\n".to_owned();
    servers
        + &classes
        + "[session]\nstart = \"main\"\norder = \"confirm\"\n[arrivals]\nshape = \"poisson\"\n\
            [client]\nthink = { mean = \"5ms\", shape = \"constant\" }\n\
            patience = { mean = \"20s\", shape = \"constant\" }\nretries = 0\n\
            [run]\nrho = [0.3]\nduration = \"1s\"\n"
}

fn shop(folder: &Folder) -> Shop {
    let database = folder.path("shop.db").into();
    Shop::start(Options { database, workers: 2, ..Options::default() }).unwrap()
}

#[test]
fn a_live_run_yields_the_same_shape_as_a_simulated_one() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let (file, report) = (folder.file("walk.toml", scenario()), folder.path("walk.html"));
    let url = format!("http://{}", shop.address());
    let args = ["lab", "run", &file, "--target", &url, "--shop", &url, "--label", "shop alone"];
    let outcome = bywash(&[&args[..], &["--json", "--report", &report]].concat());
    let result = outcome.json();
    // On a machine that is too busy for a fair run, the result must report that and the command
    // must fail.
    let code = i32::from(!result["invalid"].is_null());
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert_shape(&result);
    let cell = &result["cells"][0];
    assert_eq!((&result["scenario"], &cell["policy"]), (&"walk".into(), &"shop alone".into()));
    assert!(cell["orders"].as_u64().unwrap() > 0 && cell["wasted_work"].is_number(), "{cell}");
    assert_eq!(cell["orders"], shop.stats().orders);
    assert!(outcome.err.contains("lag of the load generator"));
    assert!(!outcome.err.contains(['\r', '\x1b']), "no terminal: {:?}", outcome.err);
    assert!(std::fs::read_to_string(report).unwrap().starts_with("<!DOCTYPE html>"));
}

#[test]
fn nobody_is_loaded_by_mistake() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario());
    // The address is from a network reserved for documentation, in which there is no host.
    let outcome = bywash(&["lab", "run", &file, "--target", "http://192.0.2.1:80"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
    assert!(outcome.err.contains("--anywhere"), "{}", outcome.err);
}

#[test]
fn a_target_that_is_no_http_url_is_misuse() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario());
    for url in ["https://127.0.0.1:1", "garbage", "", "http://127.0.0.1", "http://127.0.0.1:1/x"] {
        let outcome = bywash(&["lab", "run", &file, "--target", url]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{url}");
        assert!(outcome.err.contains("http://127.0.0.1:8080"), "{url}: {}", outcome.err);
    }
}

#[test]
fn where_nobody_listens_is_an_error_that_names_it() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario());
    let gone = nobody();
    let url = format!("http://{gone}");
    let outcome = bywash(&["lab", "run", &file, "--target", &url]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""));
    assert!(outcome.err.contains(&url), "{}", outcome.err);
    let shop = shop(&folder);
    let target = format!("http://{}", shop.address());
    let outcome = bywash(&["lab", "run", &file, "--target", &target, "--shop", &url]);
    assert_eq!(outcome.code, Some(1), "a --shop that says nothing is not passed over");
    assert!(outcome.err.contains("--shop"), "{}", outcome.err);
}

#[test]
fn a_level_has_to_be_chosen_if_there_are_several() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario().replace("[0.3]", "[0.3, 1.5]"));
    for args in [&[][..], &["--rho", "nan"], &["--rho", "-1"]] {
        let target = ["lab", "run", &file, "--target", "http://127.0.0.1:1"];
        let outcome = bywash(&[&target[..], args].concat());
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.err.contains("--rho"), "{}", outcome.err);
    }
}

#[test]
fn the_table_comes_even_if_nobody_hears_the_talk() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let file = folder.file("walk.toml", scenario());
    let url = format!("http://{}", shop.address());
    let mut command = crate::binary::command(&["lab", "run", &file, "--target", &url]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stderr(writer);
    let outcome = finish(command);
    assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
    assert!(outcome.out.contains("revenue"), "{outcome:?}");
}
