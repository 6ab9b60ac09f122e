//! Checks that every line of a metrics exporter is a sample or is ignored, and that a sample
//! contains only text of its line. Also checks that every file of `sadf` yields uses of resources
//! within bounds, or an error.
#![no_main]

use bywash_sense::series::{Sadf, Sample, Use};
use bywash_units::TimeSpan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
    {
        let Some(sample) = Sample::parse(line) else { continue };
        assert!(line.trim_start().starts_with(sample.name) && !sample.name.is_empty());
        for label in ["mode", "device", "state", ""] {
            if let Some(text) = sample.label(label) {
                assert!(text.len() <= line.len());
            }
        }
    }
    let settings =
        |ahead| Sadf { tier: "db".into(), source: 0, longest: TimeSpan::from_secs(3600), ahead };
    for ahead in [None, Some(-3600), Some(i64::MIN), Some(i64::MAX)] {
        let _told = settings(ahead).read(bytes, |one| assert_bounded(&one));
    }
});

fn assert_bounded(one: &Use) {
    assert!(one.from < one.to && one.to.since(one.from) <= TimeSpan::from_secs(3600));
    let most = one.resource.capacity.unwrap_or(one.resource.unit.most());
    assert!((0.0..=most * 3600.0).contains(&one.used), "{one:?}");
    assert!(one.resource.name.bytes().all(|byte| byte.is_ascii_graphic()), "{one:?}");
}
