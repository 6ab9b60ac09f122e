//! Tests of `bywash lab limits`, `learn` and `elephants`. These commands measure how well the
//! gateway finds its concurrency limit, learns about sessions, and finds elephants.

use serde_json::{Value, json};

use crate::binary::bywash;
use crate::folder::Folder;
use crate::sim::SCENARIO;

/// A scenario in which the servers change, with two concurrency limits: a fixed one that is right
/// until the change, and one that adapts.
const LIMITS: &str = "name = \"single-queue\"
label = \"told\"
[[policy]]
name = \"single-queue\"
label = \"finds\"
concurrency = { name = \"slope\", max = 50 }
[[servers.change]]
at = \"10s\"
workers = 1
";

#[test]
fn limits_are_judged_between_one_change_and_the_next() {
    let text = SCENARIO.split("name = \"single-queue\"").next().unwrap().to_owned() + LIMITS;
    let folder = Folder::new();
    let file = folder.file("limits.toml", text.replace("rho = [0.5, 2]", "rho = [3]"));
    let args = ["lab", "limits", &file, "--seeds", "3"];
    let table = bywash(&args).out;
    assert!(table.contains("settled") && table.contains("told"), "{table}");
    assert!(table.contains("closes") && table.contains("visible"), "{table}");
    let result: Value = bywash(&[&args[..], &["--json"]].concat()).json();
    assert_eq!((&result["scenario"], &result["seeds"]), (&json!("tiny"), &json!(3)));
    let [told, finds] = [0, 1].map(|cell| result["cells"][cell].clone());
    assert_eq!((&told["limit"], &finds["limit"]), (&json!("told"), &json!("finds")));
    let phase = |cell: &Value, phase: usize, key: &str| cell["phases"][phase][key].clone();
    assert_eq!((&told["closes"], phase(&told, 0, "slots")), (&json!("visible"), json!(2.0)));
    assert_eq!((phase(&told, 1, "from_s"), phase(&told, 1, "workers")), (json!(10.0), json!(1.0)));
    // The fixed limit still has two slots, but only one worker remains. So one request waits inside
    // the application nearly all the time.
    let inside = phase(&told, 1, "inside").as_f64().unwrap();
    assert!((0.8..1.01).contains(&inside), "{told}");
    assert!(phase(&finds, 1, "settled_seeds").is_u64(), "{finds}");
}

#[test]
fn a_scenario_in_which_no_limit_can_be_judged_is_refused() {
    let folder = Folder::new();
    let refused = |name: &str, text: &str| {
        let outcome = bywash(&["lab", name, &folder.file("odd.toml", text)]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{}", outcome.err);
        outcome.err
    };
    let err = refused("limits", SCENARIO);
    assert!(err.contains("no [[policy]] has its own `concurrency`"), "{err}");
    let limited = SCENARIO.to_owned() + "concurrency = { name = \"slope\" }\n";
    let err = refused("limits", &limited.replace("20s", "1s"));
    assert!(err.contains("arrivals last 1s: too short"), "{err}");
    let err = refused("learn", SCENARIO);
    assert!(err.contains("arrivals last 20s, but the learned worth is sampled every"), "{err}");
    let err = refused("limits", &limited.replace("20s", "8784h"));
    assert!(err.contains("at most 10000000 are allowed"), "{err}");
    let nobody = SCENARIO.replace("next = { main = 0.3, buy = 0.4 }", "next = { main = 0.3 }");
    let err = refused("learn", &nobody.replace("20s", "2h"));
    assert!(err.contains("no session of this graph makes an order"), "{err}");
    let file = folder.file("calm.toml", limited);
    let outcome = bywash(&["lab", "limits", &file]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.err.contains("at ρ = 0.5 idle workers count as lost work"), "{}", outcome.err);
}

#[test]
fn what_is_learned_stands_beside_what_the_graph_says() {
    let text = SCENARIO.replace("duration = \"20s\"", "duration = \"2h\"");
    // `faq` leads to no order, so its worth of zero must be learned as well. No session reaches
    // `loop`, which leads only to itself.
    let dead_end = "[[class]]\nname = \"loop\"\nrequest = \"GET /loop\"\ntier = \"browsing\"\nutility = 1
service = { mean = \"20ms\", shape = \"constant\" }\nnext = { loop = 1.0 }\n[[class]]\nname = \"faq\"\nrequest = \"GET /faq\"\ntier = \"browsing\"
utility = 1\nservice = { mean = \"20ms\", shape = \"constant\" }\n[session]";
    let text = text.replace("[session]", dead_end).replace("buy = 0.4 }", "buy = 0.4, faq = 0.1 }");
    let folder = Folder::new();
    let args = ["lab", "learn", &folder.file("learn.toml", text), "--rho", "0.5", "--seeds", "1"];
    let table = bywash(&args).out;
    assert!(table.contains("hours") && table.contains("1 of 1"), "{table}");
    let result = bywash(&[&args[..], &["--json"]].concat()).json();
    let truth: Vec<Option<f64>> = serde_json::from_value(result["truth"].clone()).unwrap();
    assert!((truth[0].unwrap() - 4.0 / 7.0).abs() < 1e-9, "{truth:?}");
    assert_eq!(truth[1..], [Some(1.0), None, Some(0.0)]);
    let errors = result["cells"][1]["errors"][0].clone();
    let errors: Vec<Option<f64>> = serde_json::from_value(errors).unwrap();
    assert_eq!((errors.len(), errors[2]), (4, None));
    assert!(errors.iter().flatten().all(|error| error.abs() < 0.1), "{errors:?}");
}

#[test]
fn elephants_are_looked_for_on_sites_whose_elephants_are_known() {
    let args = ["lab", "elephants", "--urls", "28,200", "--minutes", "20", "--seeds", "2"];
    let table = bywash(&args).out;
    assert!(table.contains("saturated") && table.contains("Pearson:"), "{table}");
    let result: Value = bywash(&[&args[..], &["--json"]].concat()).json();
    let cells = result["cells"].as_array().unwrap();
    let loads = ["light", "shared", "steady", "varying", "saturated", "strained"];
    let all =
        loads.into_iter().flat_map(|load| [(json!(load), json!(28)), (json!(load), json!(200))]);
    let are = cells.iter().map(|cell| (cell["load"].clone(), cell["urls"].clone()));
    assert_eq!(are.collect::<Vec<_>>(), all.collect::<Vec<_>>());
    let steady = &cells[5];
    assert!(steady["recall"].as_f64().unwrap() >= 0.75, "{steady}");
    assert!(steady["cost_error"].as_f64().unwrap() < 0.5, "{steady}");
    for odd in ["30", "8", "x", "0"] {
        let outcome = bywash(&["lab", "elephants", "--urls", odd]);
        assert_eq!(outcome.code, Some(2), "{odd}");
        assert!(outcome.err.contains("multiple of 8"), "{}", outcome.err);
    }
}
