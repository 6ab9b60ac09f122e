//! Generates one session of a trace: its requests and their times.

use bywash_scenario::Stream;
use bywash_units::TimeSpan;

use super::{BUYERS, FETCH, HESITANT, Request, SESSIONS, THINK};
use crate::Service;
use crate::books::{AUTHORS, BOOKS, CATEGORIES, TITLE_NOUNS, below, common, pick, word};

/// The minimum number of requests in a session with a cart, because visitors do not buy at once.
const COMMITTED: usize = 6;

/// Distributes the services to sessions of these lengths. Each session begins with the front page.
/// The sessions with a cart are spread evenly over the trace. The addition to the cart follows the
/// first book that the session shows, if it shows one. If the session buys, its last request is the
/// order.
pub(super) fn distribute(lengths: &[usize], mut remaining: Vec<Service>) -> Vec<Vec<Service>> {
    let committed: Vec<_> = (0..SESSIONS).filter(|one| lengths[*one] >= COMMITTED).collect();
    let with_cart = BUYERS + HESITANT;
    let mut carts = vec![0; SESSIONS];
    for number in 0..with_cart {
        // Every second session with a cart also buys.
        carts[committed[number * committed.len() / with_cart]] = 1 + number % 2;
    }
    lengths
        .iter()
        .zip(carts)
        .map(|(length, extra)| {
            let mut services = vec![Service::Home];
            services.extend(remaining.drain(remaining.len() + 1 + extra - length..));
            if extra > 0 {
                let shown = services.iter().position(|service| *service == Service::Select);
                services.insert(shown.map_or(services.len(), |place| place + 1), Service::Cart);
            }
            if extra > 1 {
                services.push(Service::Buy);
            }
            services
        })
        .collect()
}

/// Assigns times and targets to the services of one session that begins at `begins`.
pub(super) fn session(services: &[Service], begins: TimeSpan, rng: &mut Stream) -> Vec<Request> {
    let request = |(place, service): (usize, &Service)| {
        let wait = match (place, service) {
            (0, _) => begins,
            (_, Service::File) => FETCH.draw(rng),
            _ => THINK.draw(rng),
        };
        Request { wait, service: *service, target: target(*service, rng) }
    };
    services.iter().enumerate().map(request).collect()
}

fn target(service: Service, rng: &mut Stream) -> String {
    let path = service.path();
    match service {
        Service::Home | Service::Buy => path.to_owned(),
        Service::Search => format!("{path}?q={}", words(rng)),
        Service::Browse => format!("{path}?category={}", pick(&CATEGORIES, rng)),
        Service::Select | Service::Cart => format!("{path}?id={}", book(rng)),
        // Nine of ten files are covers, and one is a text sample.
        Service::File if below(10, rng) > 0 => format!("{path}{}", book(rng)),
        Service::File => format!("{path}{}", u64::from(BOOKS) + book(rng)),
    }
}

/// Returns the text of a random search. Half of the searches name a subject. The others name an
/// author or any word, frequent words more often.
fn words(rng: &mut Stream) -> String {
    match below(10, rng) {
        0..5 => pick(&TITLE_NOUNS, rng).to_lowercase(),
        5..8 => pick(&AUTHORS, rng).to_lowercase().replace(' ', "+"),
        _ => word(common(2_000, rng)),
    }
}

/// Returns the number of a random book. Some books are requested far more often than others. These
/// popular books are spread over the whole catalogue.
fn book(rng: &mut Stream) -> u64 {
    let rank = common(BOOKS.into(), rng);
    // The factor has no common divisor with the number of books, so that every book can be reached.
    rank * 1_567 % u64::from(BOOKS) + 1
}

#[cfg(test)]
mod tests {
    use super::super::Trace;
    use super::*;

    #[test]
    fn sessions_begin_at_home_and_an_order_is_their_last_word_with_a_cart_before() {
        for session in Trace::generate(4).sessions() {
            let of = |service| session.iter().position(|request| request.service == service);
            assert_eq!(of(Service::Home), Some(0));
            if let Some(buy) = of(Service::Buy) {
                assert_eq!(buy, session.len() - 1);
                assert!(of(Service::Cart).is_some_and(|cart| cart < buy));
            }
        }
    }

    #[test]
    fn every_book_can_be_asked_for() {
        let all = u64::from(BOOKS);
        let mut numbers: Vec<_> = (0..all).map(|rank| rank * 1_567 % all + 1).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=all));
    }
}
