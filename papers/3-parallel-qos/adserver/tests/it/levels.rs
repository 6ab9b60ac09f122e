//! Tests of service levels: how the level of a request is determined, and how the pool treats the
//! levels.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_adserver::{Fill, Level, Options, Selection};
use bywash_token::{LevelKeys, Secret, Secrets, UnixTime, sign_level};

use crate::site::Site;

const PAGE: &str = "/ad?slots=2&concepts=concept-1,concept-2,concept-3";

fn filled(change: impl FnOnce(Options) -> Options) -> Site {
    let fill = Some(Fill { contracts: 200, concepts: 5, seed: 1 });
    Site::with(|options| change(Options { fill, selection: Selection::Scan, ..options }))
}

fn field(secret: u8, level: &str, ago: Duration) -> String {
    let at = (SystemTime::now() - ago).duration_since(UNIX_EPOCH).unwrap();
    let keys = LevelKeys::new(&Secrets::fresh(Secret::from_bytes([secret; 32])));
    let text = sign_level(&keys, level, UnixTime::from_millis(at.as_millis() as u64)).unwrap();
    format!("Bywash-Level: {}\r\n", String::from_utf8_lossy(text.as_bytes()))
}

#[test]
fn a_level_is_believed_if_the_gateway_has_signed_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("level.keys");
    std::fs::write(&file, Secrets::fresh(Secret::from_bytes([7; 32])).to_text()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let site = filled(|options| Options { level_keys: Some(file), ..options });
    let client = site.client();
    let minutes = Duration::from_secs(300);
    for (extra, level, refused) in [
        (String::new(), Level::Low, 0),
        (field(7, "high", Duration::ZERO), Level::High, 0),
        (field(7, "low", Duration::ZERO), Level::Low, 0),
        (field(8, "high", Duration::ZERO), Level::Low, 1),
        (field(7, "high", minutes), Level::Low, 2),
        (field(7, "highest", Duration::ZERO), Level::Low, 3),
        ("Bywash-Level: high\r\n".into(), Level::Low, 4),
    ] {
        let before = site.wait_until_settled().level(level).received;
        assert_eq!(client.send("GET", PAGE, &extra, "").reply().status, 200, "{extra}");
        let stats = site.wait_until_settled();
        assert_eq!(stats.level(level).received, before + 1, "{extra}");
        assert_eq!(stats.levels_refused, refused, "{extra}");
    }
    // The parameter `type` is for the laboratory only, and has no effect without the option
    // `level_parameter`.
    assert_eq!(client.send("GET", &format!("{PAGE}&type=1"), "", "").reply().status, 200);
    assert_eq!(site.wait_until_settled().level(Level::High).received, 1);
}

#[test]
fn without_keys_no_level_is_believed() {
    let site = filled(|options| options);
    let extra = field(7, "high", Duration::ZERO);
    assert_eq!(site.client().send("GET", PAGE, &extra, "").reply().status, 200);
    assert_eq!(site.wait_until_settled().level(Level::High).received, 0);
}

#[test]
fn every_way_of_sharing_threads_serves_all_pages() {
    for (ratio, parity) in [(None, None), (Some(0.5), None), (None, Some(3))] {
        let site = filled(|options| Options { ratio, parity, level_parameter: true, ..options });
        std::thread::scope(|threads| {
            for number in 0..8 {
                let client = site.client();
                threads.spawn(move || {
                    for i in 0..30 {
                        let page = format!("{PAGE}&type={}", (number + i) % 2);
                        assert_eq!(client.send("GET", &page, "", "").reply().status, 200);
                    }
                });
            }
        });
        let stats = site.wait_until_settled();
        assert_eq!(stats.levels.values().map(|level| level.answered).sum::<u64>(), 240);
        assert!(Level::ALL.iter().all(|level| stats.turns[level].mean_us > 0), "{stats:?}");
        assert_eq!(stats.goal.is_some(), ratio.is_some());
        assert_eq!(stats.selections.pages, 240);
    }
}

#[test]
fn a_page_of_the_high_level_runs_on_several_threads_and_one_of_the_low_on_one() {
    let fill = Some(Fill { contracts: 20_000, concepts: 5, seed: 1 });
    let scan = Selection::Scan;
    let with = |options| Options { fill, selection: scan, level_parameter: true, ..options };
    let site = Site::with(with);
    // Returns whether the pages of a level used more threads than there were pages, while a client
    // requested fifty pages.
    let is_wide = |level: Level| {
        let client = site.client();
        let asking = std::thread::spawn(move || {
            for _ in 0..50 {
                let page = format!("{PAGE}&type={}", level as u8);
                assert_eq!(client.send("GET", &page, "", "").reply().status, 200);
            }
        });
        let mut wide = false;
        site.wait_until(|stats| {
            let turns = stats.turns[&level];
            wide |= turns.threads as usize > turns.running;
            asking.is_finished()
        });
        asking.join().unwrap();
        wide
    };
    assert_eq!([Level::Low, Level::High].map(is_wide), [false, true]);
}
