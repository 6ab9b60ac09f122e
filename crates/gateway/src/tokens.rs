//! Session tokens as they are in force: what the token of a request is worth here, and the cookie
//! that gives the next one.
//!
//! A token never makes a request fail. One that proves nothing is counted by its cause, and its
//! bearer is who he would be without it.

use bywash_config::{Config, Session, Signal, Token};
use bywash_engine::{ClassId, ClassSet};
use bywash_token::{
    Claims, Day, Holder, Keys, Mark, Marks, Moment, Refusal, SessionName, open, seal,
};
use bywash_units::Span;
use ring::rand::{SecureRandom, SystemRandom};

/// For how long it is remembered that somebody has ordered: a season.
const RETURNING: Span = Span::from_secs(90 * 86_400);

/// What is in force.
#[derive(Clone)]
pub(crate) struct Tokens {
    cookie: String,
    keys: Keys,
    /// By class. None has one that shares it with another: it is left out of tokens.
    marks: Vec<Option<Mark>>,
    ttl: Span,
    is_session: bool,
    remembers_orders: bool,
    random: SystemRandom,
}

/// What a request shows of tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// What its session was served, by a good token.
    pub(crate) proven: ClassSet,
    /// The token is good and will be for a while.
    pub(crate) lasts: bool,
    /// The session, as tokens call it that are signed now.
    pub(crate) session: Option<SessionName>,
    /// Its visitor's last order, if the token knows of one.
    pub(crate) ordered: Option<Day>,
    /// Whether the token that it brought proves anything; `None` if it brought none.
    pub(crate) worth: Option<Result<(), Refusal>>,
}

impl Tokens {
    /// `None`: there are to be none.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let Token { cookie, keys, .. } = config.identify.token.clone()?;
        let names = config.classes.iter().map(|class| class.class.name.as_str());
        Some(Self {
            cookie,
            keys,
            marks: Marks::distinct(names),
            ttl: config.engine.session_ttl,
            is_session: config.identify.session == Session::Token,
            remembers_orders: config.identify.signals.contains(&Signal::Returning),
            random: SystemRandom::new(),
        })
    }

    /// The name of their cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Whether a token is the session, and not beside one.
    pub(crate) const fn are_sessions(&self) -> bool {
        self.is_session
    }

    /// What a request shows that brings this token, if any, beside this cookie of the application's.
    /// `gives`: its answer may bring a new token, for which the session's name is needed.
    pub(crate) fn shown(
        &self,
        now: Moment,
        token: Option<&[u8]>,
        cookie: Option<&[u8]>,
        gives: bool,
    ) -> Shown {
        let mut shown = token.map_or_else(Shown::default, |token| self.read(now, token, cookie));
        if let (Some(cookie), true, None) = (cookie, gives, shown.session) {
            shown.session = Some(self.session(cookie));
        }
        shown
    }

    /// What tokens that are signed now call the session of this cookie.
    pub(crate) fn session(&self, cookie: &[u8]) -> SessionName {
        self.keys.session(&Holder::Cookie(cookie))
    }

    fn read(&self, now: Moment, token: &[u8], cookie: Option<&[u8]>) -> Shown {
        let opened = match open(&self.keys, token) {
            Ok(opened) => opened,
            Err(refusal) => return Shown { worth: Some(Err(refusal)), ..Shown::default() },
        };
        let holder = match cookie {
            _ if self.is_session => Some(Holder::Itself(opened.session())),
            Some(cookie) => Some(Holder::Cookie(cookie)),
            None => None,
        };
        let served = holder.ok_or(Refusal::Foreign);
        let served = served.and_then(|holder| opened.proves(now, self.ttl, &holder));
        let lasts = served.is_ok() && !opened.wants_renewal(now, self.ttl);
        let name = opened.session();
        Shown {
            proven: served.map_or(ClassSet::NONE, |served| self.classes(served)),
            lasts,
            session: (lasts || (self.is_session && served.is_ok())).then_some(name),
            ordered: opened.ordered(now, RETURNING).filter(|_| self.remembers_orders),
            worth: Some(served.map(|_| ())),
        }
    }

    /// The classes with these marks. What other gateways call otherwise is nothing here.
    fn classes(&self, served: &Marks) -> ClassSet {
        let has = |mark: &Option<Mark>| mark.is_some_and(|mark| served.contains(mark));
        let marks = self.marks.iter().enumerate();
        marks.filter(|(_, mark)| has(mark)).map(|(index, _)| ClassId(index as u8)).collect()
    }

    /// Whether a request that shows this is to be given another token when it is answered: it has
    /// none that lasts, or by this answer there is more to say.
    pub(crate) fn is_due(&self, shown: &Shown, class: ClassId, ordered: Option<Day>) -> bool {
        let is_new = !shown.proven.meets(ClassSet::NONE.with(class));
        let grows = is_new && self.marks.get(class.index()).is_some_and(Option::is_some);
        !shown.lasts || grows || ordered != shown.ordered
    }

    /// The day of an order that was made now, if such days are kept.
    pub(crate) fn day_of_order(&self, now: Moment) -> Option<Day> {
        now.day().filter(|_| self.remembers_orders)
    }

    /// A session that nobody has yet, where tokens are sessions. `None`: the system has no
    /// randomness to give.
    pub(crate) fn draw_session(&self) -> Option<SessionName> {
        let mut name = [0; 8];
        self.random.fill(&mut name).ok()?;
        Some(SessionName(name))
    }

    /// The cookie with a token that says so (RFC 6265 §4.1), for an answer.
    pub(crate) fn set_cookie(
        &self,
        now: Moment,
        session: SessionName,
        served: ClassSet,
        ordered: Option<Day>,
        secure: bool,
    ) -> Vec<u8> {
        let mut claims = Claims { ordered, ..Claims::new(now, session) };
        let mark = |class: ClassId| self.marks.get(class.index()).copied().flatten();
        served.iter().filter_map(mark).for_each(|mark| claims.served.insert(mark));
        let lives = if ordered.is_some() { RETURNING } else { self.ttl };
        let mut cookie = Vec::with_capacity(360);
        cookie.extend_from_slice(self.cookie.as_bytes());
        cookie.push(b'=');
        cookie.extend_from_slice(seal(&self.keys, &claims).as_bytes());
        let age = lives.as_millis() / 1000;
        let rest = format!("; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax");
        cookie.extend_from_slice(rest.as_bytes());
        if secure {
            cookie.extend_from_slice(b"; Secure");
        }
        cookie
    }
}
