//! The services of the store: the six of paper 4, and the product files.

use http::Method;
use serde::Serialize;

/// One service of the store, which is one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// `GET /`: the front page.
    Home,
    /// `GET /search?q=`: the books whose pages contain the text `q`.
    Search,
    /// `GET /browse?category=`: the books of a category.
    Browse,
    /// `GET /book?id=`: one book, and other books on the same subject.
    Select,
    /// `POST /cart` with `id`: puts a book into the cart.
    Cart,
    /// `POST /buy`: turns the cart of the session into an order.
    Buy,
    /// `GET /file/N`: a cover or a text sample, served without the database.
    File,
}

impl Service {
    /// Every service, ordered so that `ALL[service.index()] == service`.
    pub const ALL: [Self; 7] =
        [Self::Home, Self::Search, Self::Browse, Self::Select, Self::Cart, Self::Buy, Self::File];

    /// Returns the index of the service in [`Service::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the service's name in statistics and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Search => "search",
            Self::Browse => "browse",
            Self::Select => "select",
            Self::Cart => "cart",
            Self::Buy => "buy",
            Self::File => "file",
        }
    }

    /// Returns the path of the service's route. For files, it ends before the number.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::Search => "/search",
            Self::Browse => "/browse",
            Self::Select => "/book",
            Self::Cart => "/cart",
            Self::Buy => "/buy",
            Self::File => "/file/",
        }
    }

    /// Returns the HTTP method of the service's route.
    pub const fn method(self) -> Method {
        match self {
            Self::Home | Self::Search | Self::Browse | Self::Select | Self::File => Method::GET,
            Self::Cart | Self::Buy => Method::POST,
        }
    }

    /// Returns the service at `path`, or `None` if there is none.
    pub fn at(path: &str) -> Option<Self> {
        let file = path.starts_with(Self::File.path()).then_some(Self::File);
        file.or_else(|| Self::ALL.into_iter().find(|service| service.path() == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_is_found_at_its_own_place_and_path() {
        for service in Service::ALL {
            assert_eq!(Service::ALL[service.index()], service);
            assert_eq!(Service::at(service.path()), Some(service));
            assert_eq!(serde_json::to_value(service).unwrap(), service.name());
        }
        assert_eq!(Service::at("/file/17"), Some(Service::File));
        assert_eq!(Service::at("/filing"), None);
    }
}
