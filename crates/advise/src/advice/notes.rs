//! The notes of an advice: data that the log lacks, and results that the operator should check.

use super::{Advice, Counts, OtherOrder, plain};
use crate::patience::PatienceSetting;
use crate::role::Role;
use crate::summary::Summary;

impl Summary {
    pub(super) fn notes(&self, advice: &Advice) -> Vec<String> {
        let mut notes = Vec::new();
        let Counts { requests, timed, lasted, .. } = advice.counts;
        let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
        if timed == 0 {
            notes.push(
                "The log has no durations, so patience, the limit, costs and the forecast are \
                 unknown. Apache httpd writes durations with %D, nginx with $request_time and \
                 $upstream_response_time."
                    .into(),
            );
        } else if 10 * timed < 9 * requests {
            notes.push(format!(
                "Only {:.0} % of the requests have a duration.",
                percent(timed, requests)
            ));
        }
        notes_of_patience(advice, &mut notes);
        if self.counts.strangers > 0 {
            let share = percent(self.counts.strangers, requests);
            notes.push(format!(
                "{share:.0} % of the requests do not show their client, so they are in no session."
            ));
        }
        if advice.populations.is_none() {
            notes.push(
                "The log does not record user agents, so populations of clients cannot be told \
                 apart and scrapers cannot be named. Apache httpd writes user agents with \
                 %{User-Agent}i, nginx with $http_user_agent."
                    .into(),
            );
        }
        self.notes_of_time(advice, lasted, &mut notes);
        notes.extend(advice.several_hosts());
        self.notes_of_order(advice, &mut notes);
        for class in advice.classes.iter().filter(|class| 20 * class.mismatched > class.requests) {
            notes.push(format!(
                "By their words, {:.0} % of the requests of class `{}` are for something else. \
                 The patterns of the class match them nevertheless.",
                percent(class.mismatched, class.requests),
                class.role.name()
            ));
        }
        notes
    }

    fn notes_of_order(&self, advice: &Advice, notes: &mut Vec<String>) {
        match (&advice.order, &self.order) {
            (None, Some(named)) => {
                notes.push(format!("No request matches `{}`, so no order is known.", plain(named)));
            }
            (None, None) => notes.push(
                "No order was found. Name it with --order 'POST /PATH', or utilities stay unknown."
                    .into(),
            ),
            (Some(name), _)
                if advice
                    .classes
                    .iter()
                    .all(|class| class.role != Role::Order || class.patterns.is_empty()) =>
            {
                notes.push(format!(
                    "The order, {}, has no class of its own: other classes match its requests, \
                     or no pattern of a class is possible for it. Name with --order the \
                     parameters that only the order has, as '/?order-received&...'.",
                    plain(name)
                ));
            }
            (Some(_), _) => {}
        }
        if self.order.is_none() && !advice.other_orders.is_empty() {
            let others: Vec<String> = advice.other_orders.iter().map(OtherOrder::shown).collect();
            notes.push(format!(
                "Name the order with --order if it is one of these: {}.",
                others.join(", ")
            ));
        }
    }

    fn notes_of_time(&self, advice: &Advice, lasted: f64, notes: &mut Vec<String>) {
        let clock = &self.clock;
        let clients = &advice.clients;
        if clock.strays + clock.backward > 0 {
            notes.push(format!(
                "The clock of the log jumps: back {} times, and forward by more than an hour {} \
                 times. {} requests are out of order in time and belong to no session and no \
                 minute.",
                clock.backward, clock.forward, clock.strays
            ));
        }
        if advice.busy.is_some() && lasted < 60.0 {
            notes.push(format!(
                "The log is shorter than a minute, so its peak is the rate over all of its \
                 {lasted:.1} s, which says little."
            ));
        }
        if clients.evicted > 0 {
            notes.push(format!(
                "{} sessions were ended early, because more than {} were open at once.",
                clients.evicted,
                crate::sessions::MOST
            ));
        }
        if 10 * clients.open as u64 > clients.sessions && lasted > 0.0 {
            notes.push(format!(
                "The log ends before {} of {} sessions were over (a pause of 30 minutes). They \
                 count as having left, so utilities are rather too low.",
                clients.open, clients.sessions
            ));
        }
        if self.minutes.beyond > 0 {
            notes.push(format!(
                "{} requests are beyond the {} minutes that count for the peak.",
                self.minutes.beyond,
                crate::minutes::MOST
            ));
        }
    }
}

/// Appends the caveats about the estimate of patience to `notes`.
fn notes_of_patience(advice: &Advice, notes: &mut Vec<String>) {
    if advice.counts.left == 0 {
        notes.push(
            "The log shows no client that left. nginx shows it by 499, HAProxy by C in its flags, \
             Apache httpd by %X. If the format lacks these, or a hop hides departures, the log \
             says nothing about patience."
                .into(),
        );
    } else if advice.patience.mean.is_none() {
        notes.push(format!("Too few clients left to estimate patience: {}.", advice.patience.left));
    }
    if let Some(found) = advice.patience.median.or(advice.patience.mean)
        && PatienceSetting::of(found).clamped.is_some()
    {
        notes.push(format!(
            "Patience is {found:.1} s in the log and was clamped: the configuration has {:.0} s.",
            PatienceSetting::of(found).seconds
        ));
    }
}
