//! Checks that every configuration file is either accepted, or refused with messages that name the
//! errors.
#![no_main]

use bywash_config::{Config, Problems};
use bywash_engine::classify::RequestParts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match Config::parse(text, "fuzz.toml") {
        Ok((config, warnings)) => {
            told(&warnings);
            assert!(!config.classes.is_empty() && !config.upstream.servers.is_empty());
            assert!(config.classes.len() <= 64 && config.upstream.servers.len() <= 64);
            // The gateway derives these values from a configuration when it starts.
            let classes: Vec<_> = config.classes.iter().map(|class| class.class.clone()).collect();
            let _scheduler = config.scheduler.scheduler(&classes);
            for path in ["/", "/shop/cart/1", text.get(..40).unwrap_or(text)] {
                let class = config.classifier.class(&RequestParts::new("GET", path));
                assert!(class.index() < classes.len());
            }
            let (_, again) = Config::parse(text, "fuzz.toml").expect("it was taken before");
            assert_eq!(again.to_json(), warnings.to_json());
        }
        Err(problems) => {
            assert!(problems.iter().count() > 0);
            told(&problems);
        }
    }
});

fn told(problems: &Problems) {
    let _ = problems.render(false);
    let _ = problems.to_json();
}
