//! Whatever a state file holds, a gateway starts with it, and what it then writes it can read.
#![no_main]

use std::sync::{Arc, LazyLock};

use bywash_config::Config;
use bywash_engine::{AddressKey, AnswerKind, ClassId, End, Engine, Options, Request, SessionKey};
use bywash_units::Utility;
use libfuzzer_sys::fuzz_target;

/// The gateway's own files, which are not public there, and what they know of the rest of it.
#[path = "../../crates/gateway/src"]
#[allow(dead_code, unused_imports, reason = "what other parts of the gateway ask for")]
mod gateway {
    pub(crate) mod driver;
    pub(crate) mod learned;
    pub(crate) mod sync;
}

use gateway::{driver, learned, sync};

mod access_log {
    /// In the year 2033.
    pub(crate) fn wall_clock_ms() -> u64 {
        2_000_000_000_000
    }
}

mod settings {
    pub(crate) struct Settings {
        pub(crate) config: bywash_config::Config,
    }
}

mod shared {
    #[derive(Clone, Copy)]
    pub(crate) struct Secret(pub(crate) u64, pub(crate) u64);

    pub(crate) struct Shared {
        pub(crate) driver: super::Arc<crate::driver::Driver>,
        pub(crate) secret: Secret,
    }

    impl Shared {
        pub(crate) fn secret(&self) -> Secret {
            self.secret
        }
    }
}

static SETTINGS: LazyLock<settings::Settings> = LazyLock::new(|| {
    let text = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
                [class.cart]\nmatch = ['* /cart']\n[class.pay]\nmatch = ['* /pay']\n";
    match Config::parse(text, "fuzz") {
        Ok((config, _)) => settings::Settings { config },
        Err(problems) => panic!("{}", problems.render(false)),
    }
});

const SESSIONS: u32 = 8;

/// A gateway that starts with this.
fn started(learned: &learned::Learned) -> (shared::Shared, usize) {
    let config = &SETTINGS.config;
    let classes: Vec<_> = config.classes.iter().map(|class| class.class.clone()).collect();
    let order = config.order.order(&classes);
    let options = Options { limit: 1.into(), sessions: SESSIONS, ..config.engine.clone() };
    let driver = Arc::new(driver::Driver::new(Engine::new(classes, order, options)));
    let shared = shared::Shared { driver, secret: learned.secret() };
    let remembered = learned.restore(&shared, &SETTINGS);
    (shared, remembered)
}

fuzz_target!(|bytes: &[u8]| {
    let Some(first) = learned::Learned::read(bytes) else { return };
    let (shared, remembered) = started(&first);
    assert!(shared.driver.status().sessions <= SESSIONS);
    assert!(shared.driver.status().sessions as usize <= remembered);

    let written = learned::write(&shared, &SETTINGS);
    let again = learned::Learned::read(&written).expect("it is our own");
    let (next, remembered) = started(&again);
    assert!(remembered <= SESSIONS as usize);
    assert!(next.driver.status().mean_service <= shared.driver.status().mean_service);

    // What it has learned does not stand in the way of requests.
    let (session, earned) = (SessionKey(1), Utility::new(1.0));
    let request = |class| Request {
        session: Some(session),
        address: Some(AddressKey(1)),
        ..Request::of(ClassId(class))
    };
    let tickets: Vec<_> = (0..3).map(|class| next.driver.arrive(request(class), true)).collect();
    for ticket in tickets {
        let _ = (next.driver.on_timer(), next.driver.status());
        ticket.answered(
            Some(driver::Progress { session, answer: AnswerKind::Content, earned, in_time: true }),
            End::ANSWERED,
        );
    }
    assert_eq!(next.driver.status().running, 0);
});
