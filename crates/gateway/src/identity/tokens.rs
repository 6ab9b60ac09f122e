//! Session tokens in force: checks the token of a request, and builds the cookie that carries the
//! next one.
//!
//! A token never makes a request fail. A token that proves nothing is counted by its cause, and its
//! request is treated as if it had none.

use bywash_config::{Config, Session, Signal, Token};
use bywash_engine::{ClassId, ClassSet};
use bywash_token::{
    Claims, Day, Holder, Keys, Mark, Marks, Refusal, SessionName, UnixTime, open, seal,
};
use bywash_units::TimeSpan;
use ring::rand::{SecureRandom, SystemRandom};

/// How long an order is remembered: a season.
const RETURNING: TimeSpan = TimeSpan::from_secs(90 * 86_400);

/// The token settings in force.
#[derive(Clone)]
pub(crate) struct Tokens {
    cookie: String,
    keys: Keys,
    /// The mark of each class. A class whose mark would equal another's has none and is left out of
    /// tokens.
    marks: Vec<Option<Mark>>,
    ttl: TimeSpan,
    is_session: bool,
    remembers_orders: bool,
    random: SystemRandom,
}

/// The facts that a request's token proves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// The classes that its session was served, according to a good token.
    pub(crate) proven: ClassSet,
    /// Whether the token is good and will be for a while.
    pub(crate) lasts: bool,
    /// The session, by the name that tokens signed now give it.
    pub(crate) session: Option<SessionName>,
    /// The day of the client's last order, if the token knows of one.
    pub(crate) ordered: Option<Day>,
    /// Whether the request's token proves anything; `None` if it brought none.
    pub(crate) worth: Option<Result<(), Refusal>>,
}

impl Tokens {
    /// Returns the token settings; `None` if the configuration has no tokens.
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

    /// The name of the cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Returns whether the token itself is the session, rather than an addition to another one.
    pub(crate) const fn are_sessions(&self) -> bool {
        self.is_session
    }

    /// Reads the token of a request, if it has one, together with the application's session cookie.
    /// `gives` says that the answer may bring a new token, for which the session's name is needed.
    pub(crate) fn shown(
        &self,
        now: UnixTime,
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

    /// Returns the name that tokens signed now give the session of this cookie.
    pub(crate) fn session(&self, cookie: &[u8]) -> SessionName {
        self.keys.session(&Holder::Cookie(cookie))
    }

    fn read(&self, now: UnixTime, token: &[u8], cookie: Option<&[u8]>) -> Shown {
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

    /// Returns the classes with these marks. Marks of classes that only other gateways have are
    /// ignored.
    fn classes(&self, served: &Marks) -> ClassSet {
        let has = |mark: &Option<Mark>| mark.is_some_and(|mark| served.contains(mark));
        let marks = self.marks.iter().enumerate();
        marks.filter(|(_, mark)| has(mark)).map(|(index, _)| ClassId(index as u8)).collect()
    }

    /// Returns whether a request is to be given a new token with its answer: it has none that
    /// lasts, or this answer adds a fact. `class`: the class that the answer proves, if it does.
    pub(crate) fn is_due(
        &self,
        shown: &Shown,
        class: Option<ClassId>,
        ordered: Option<Day>,
    ) -> bool {
        let grows = |class: ClassId| {
            let is_new = !shown.proven.meets(ClassSet::NONE.with(class));
            is_new && self.marks.get(class.index()).is_some_and(Option::is_some)
        };
        !shown.lasts || class.is_some_and(grows) || ordered != shown.ordered
    }

    /// Returns the day of an order that was made now, if such days are kept.
    pub(crate) fn day_of_order(&self, now: UnixTime) -> Option<Day> {
        now.day().filter(|_| self.remembers_orders)
    }

    /// Draws a new session, where tokens are sessions. Returns `None` if the system has no
    /// randomness to give.
    pub(crate) fn draw_session(&self) -> Option<SessionName> {
        let mut name = [0; 8];
        self.random.fill(&mut name).ok()?;
        Some(SessionName(name))
    }

    /// Returns the cookie with a token of these claims (RFC 6265 §4.1), for an answer.
    pub(crate) fn set_cookie(
        &self,
        now: UnixTime,
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
