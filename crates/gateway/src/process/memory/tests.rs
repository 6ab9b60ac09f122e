use super::*;

fn config(lines: &str) -> Config {
    let text = format!("version = 1\nupstream.server = 'http://127.0.0.1:1'\n{lines}");
    let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
    config
}

#[test]
fn a_level_begins_at_its_mark_and_ends_below_it() {
    let memory = Arc::new(Memory::new(1000));
    let mut held = memory.hold(0);
    let mut at = |bytes| {
        held.set(bytes);
        memory.level()
    };
    assert_eq!([at(599), at(600), at(749)], [Level::Calm, Level::Shrink, Level::Shrink]);
    assert_eq!([at(750), at(899), at(900)], [Level::Close, Level::Close, Level::Refuse]);
    assert_eq!([at(850), at(849)], [Level::Refuse, Level::Close], "5 percent below its mark");
    assert_eq!([at(700), at(699)], [Level::Close, Level::Shrink]);
    assert_eq!([at(550), at(549)], [Level::Shrink, Level::Calm]);
    assert_eq!([at(5000), at(0)], [Level::Refuse, Level::Calm], "at once in both directions");
}

#[test]
fn each_level_does_what_it_says_and_what_comes_before_it() {
    let memory = Arc::new(Memory::new(1000));
    let mut held = memory.hold(0);
    let mut does = |bytes| {
        held.set(bytes);
        let span = memory.time(TimeSpan::from_secs(75));
        let shrinks = memory.read_ahead(1 << 20) < 1 << 20 && memory.socket_buffer().is_some();
        let refuses = memory.replaces_connections() && memory.refuses_body(None);
        (shrinks, memory.closes() && span < TimeSpan::from_secs(75), refuses)
    };
    assert_eq!(does(0), (false, false, false));
    assert_eq!(does(600), (true, false, false));
    assert_eq!(does(750), (true, true, false));
    assert_eq!(does(900), (true, true, true));
    assert!(memory.refuses_body(Some(SMALL_BODY + 1)));
    assert!(!memory.refuses_body(Some(SMALL_BODY)), "a login is no burden");
}

#[test]
fn nothing_is_shortened_that_is_short() {
    let memory = Arc::new(Memory::new(1000));
    let _held = memory.hold(1000);
    assert_eq!(memory.time(TimeSpan::from_millis(100)), TimeSpan::from_millis(100));
    assert_eq!(memory.read_ahead(0), 0);
}

#[test]
fn what_is_held_is_given_back_by_all_threads() {
    let memory = Arc::new(Memory::new(1 << 20));
    std::thread::scope(|scope| {
        for number in 1..=4 {
            let memory = Arc::clone(&memory);
            scope.spawn(move || {
                let mut held = memory.hold(0);
                for round in 0..10_000 {
                    held.set(round % 97 * number);
                }
            });
        }
    });
    assert_eq!(memory.used(), 0);
    memory.tick(0);
    assert_eq!(memory.level(), Level::Calm);
}

#[test]
fn the_kernels_part_counts_as_long_as_it_is_there() {
    let memory = Arc::new(Memory::new(1000));
    let _held = memory.hold(500);
    memory.tick(500);
    assert_eq!((memory.level(), memory.used()), (Level::Refuse, 1000));
    memory.tick(0);
    assert_eq!((memory.level(), memory.used()), (Level::Calm, 500));
}

#[test]
fn a_smaller_budget_takes_effect_at_once() {
    let memory = Arc::new(Memory::new(1000));
    let _held = memory.hold(500);
    memory.set_budget(500);
    assert_eq!(memory.level(), Level::Refuse);
    memory.set_budget(1000);
    assert_eq!(memory.level(), Level::Calm);
}

#[test]
fn tables_budget_and_slack_fit_into_the_limit() {
    let config = config("");
    for mebibytes in [128, 256, 400, 1024, 65_536] {
        let found = budget(&config, Some(mebibytes << 20), Some(1 << 40));
        assert!(found.whole() <= mebibytes << 20, "{mebibytes} MiB: {found:?}");
        assert!(found.whole() + 5 * MIB > mebibytes << 20, "{mebibytes} MiB: {found:?}");
    }
    let small = budget(&config, Some(32 << 20), None);
    assert!(small.whole() > 32 << 20, "the doctor can tell that this is too little");
}

#[test]
fn without_a_limit_it_is_a_bounded_part_of_the_machine() {
    let config = config("");
    let of_machine = |machine| budget(&config, None, machine).bytes;
    assert!(of_machine(Some(8 << 30)) < 4 << 30);
    assert!(of_machine(Some(1 << 40)) < 4 << 30);
    assert!(of_machine(None) < 512 << 20);
}

#[test]
fn a_budget_that_is_given_is_the_budget() {
    let given = config("client_limits.memory = '48MiB'");
    assert_eq!(budget(&given, Some(1 << 30), Some(1 << 30)).bytes, 48 << 20);
}
