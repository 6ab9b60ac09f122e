//! Session tokens in force: checks the token of a request, and builds the cookie that carries the
//! next one.
//!
//! An invalid token never makes a request fail. The gateway counts a token that proves nothing, by
//! cause, and treats its request as one without a token.

use bywash_config::{Config, Session, Signal, Token};
use bywash_engine::{ClassId, ClassSet};
use bywash_token::{
    Claims, Day, Holder, Keys, Mark, Marks, Refusal, SessionName, UnixTime, open, seal,
};
use bywash_units::TimeSpan;
use ring::rand::{SecureRandom, SystemRandom};

/// The time for which a token proves that its client has ordered: 90 days.
const RETURNING: TimeSpan = TimeSpan::from_secs(90 * 86_400);

/// The token settings in force, with the keys and the mark of each class, by which tokens name the
/// class.
#[derive(Clone)]
pub(crate) struct Tokens {
    cookie: String,
    keys: Keys,
    /// The mark of each class, by class number. `None` for a class whose mark would equal
    /// another's: tokens do not record such a class.
    marks: Vec<Option<Mark>>,
    ttl: TimeSpan,
    is_session: bool,
    remembers_orders: bool,
    random: SystemRandom,
}

/// The facts that a request's token proves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// The classes that the session was served, according to a valid token.
    pub(crate) proven: ClassSet,
    /// Whether the token is valid and need not be renewed yet.
    pub(crate) lasts: bool,
    /// The name of the session, as a token that is signed now would contain it. `None` if it is
    /// unknown or not needed.
    pub(crate) session: Option<SessionName>,
    /// The day of the client's last order. `None` if the token contains none, or if orders are not
    /// remembered.
    pub(crate) ordered: Option<Day>,
    /// Whether the request's token is valid, with the reason if not; `None` for a request without a
    /// token.
    pub(crate) worth: Option<Result<(), Refusal>>,
}

impl Tokens {
    /// Builds the token settings of a configuration. Returns `None` if it has no tokens.
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

    /// Returns the name of the cookie that carries the token.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Returns whether the token itself identifies the session. Otherwise the token is bound to the
    /// application's session cookie.
    pub(crate) const fn are_sessions(&self) -> bool {
        self.is_session
    }

    /// Reads `token`, the token of a request, together with `cookie`, the application's session
    /// cookie. `gives` says whether the answer may bring a new token, so that the session's name is
    /// needed. An invalid token is reported in [`Shown::worth`].
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

    /// Returns the name that a token signed now contains for the session with this session cookie.
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

    /// Returns the classes with these marks. Ignores marks of classes that this configuration does
    /// not have.
    fn classes(&self, served: &Marks) -> ClassSet {
        let has = |mark: &Option<Mark>| mark.is_some_and(|mark| served.contains(mark));
        let marks = self.marks.iter().enumerate();
        marks.filter(|(_, mark)| has(mark)).map(|(index, _)| ClassId(index as u8)).collect()
    }

    /// Returns whether an answer is to bring a new token, because the request has none that lasts
    /// or because the answer adds a fact. `class` is the class that the answer proves, if any;
    /// `ordered` is the day of the client's last order.
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

    /// Returns the present day, as the day of an order made now. Returns `None` if orders are not
    /// remembered.
    pub(crate) fn day_of_order(&self, now: UnixTime) -> Option<Day> {
        now.day().filter(|_| self.remembers_orders)
    }

    /// Draws a random name for a new session, for tokens that identify sessions themselves. Returns
    /// `None` if the system provides no random bytes.
    pub(crate) fn draw_session(&self) -> Option<SessionName> {
        let mut name = [0; 8];
        self.random.fill(&mut name).ok()?;
        Some(SessionName(name))
    }

    /// Returns the value of `Set-Cookie` (RFC 6265 §4.1) with a token that is signed now. The token
    /// contains the session, the classes that it was served, and the day of the last order. With
    /// `secure` the value has the attribute `Secure`.
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
