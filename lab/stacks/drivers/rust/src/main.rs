//! An application for `scripts/stacks drivers`: it runs the query of its request with the driver
//! that its first argument names. `search` has the lines of the SDK's README. If the second argument
//! is not `sdk`, the layer is left out.

use std::collections::HashMap;
use std::error::Error;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use bywash_tower::{Class, Controller, DatabaseName, StopClient, TerminateLayer, Token};
use diesel::dsl::sql;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection};
use mysql_async::prelude::Queryable;
use tokio::net::TcpListener;

type Failure = Box<dyn Error + Send + Sync>;

/// A connection of a driver.
trait Driver: Send + Sized + 'static {
    /// The statement that returns the number of a connection.
    const NUMBER: &str;

    fn open(url: &str) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Runs a query that returns one text.
    fn ask(&mut self, query: String) -> impl Future<Output = Result<String, Failure>> + Send;
}

const POSTGRES: &str = "SELECT pg_backend_pid()::text";
const MARIADB: &str = "SELECT CAST(CONNECTION_ID() AS CHAR)";

impl Driver for tokio_postgres::Client {
    const NUMBER: &str = POSTGRES;

    async fn open(url: &str) -> Result<Self, Failure> {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn ask(&mut self, query: String) -> Result<String, Failure> {
        Ok(self.query_one(&query, &[]).await?.get(0))
    }
}

impl Driver for mysql_async::Conn {
    const NUMBER: &str = MARIADB;

    async fn open(url: &str) -> Result<Self, Failure> {
        Ok(Self::from_url(url).await?)
    }

    async fn ask(&mut self, query: String) -> Result<String, Failure> {
        Ok(self.query_first(query).await?.ok_or("no row")?)
    }
}

macro_rules! with_sqlx {
    ($connection:ty, $number:ident) => {
        impl Driver for $connection {
            const NUMBER: &str = $number;

            async fn open(url: &str) -> Result<Self, Failure> {
                Ok(<Self as sqlx::Connection>::connect(url).await?)
            }

            async fn ask(&mut self, query: String) -> Result<String, Failure> {
                Ok(sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(self).await?)
            }
        }
    };
}

macro_rules! with_diesel {
    ($connection:ty, $number:ident) => {
        impl Driver for $connection {
            const NUMBER: &str = $number;

            async fn open(url: &str) -> Result<Self, Failure> {
                Ok(Self::establish(url).await?)
            }

            async fn ask(&mut self, query: String) -> Result<String, Failure> {
                Ok(diesel_async::RunQueryDsl::get_result(sql::<Text>(&query), self).await?)
            }
        }
    };
}

with_sqlx!(sqlx::PgConnection, POSTGRES);
with_sqlx!(sqlx::MySqlConnection, MARIADB);
with_diesel!(AsyncPgConnection, POSTGRES);
with_diesel!(AsyncMysqlConnection, MARIADB);

struct Shop<D> {
    url: String,
    name: DatabaseName,
    stop_client: StopClient,
    /// The connections that no request uses.
    free: Mutex<Vec<D>>,
}

impl<D: Driver> Shop<D> {
    async fn connection(&self) -> Result<D, Failure> {
        let free = self.free.lock().expect("no holder panics").pop();
        match free {
            Some(connection) => Ok(connection),
            None => D::open(&self.url).await,
        }
    }

    fn give_back(&self, connection: D) {
        self.free.lock().expect("no holder panics").push(connection);
    }

    async fn plain(&self, query: String) -> Result<String, Failure> {
        let mut connection = self.connection().await?;
        let found = connection.ask(query).await;
        self.give_back(connection);
        found
    }

    async fn leased(&self, token: &Token, query: String) -> Result<String, Failure> {
        let mut connection = self.connection().await?;
        let number = connection.ask(D::NUMBER.to_owned()).await?.parse()?;
        let mut leased =
            self.stop_client.lease(token, &self.name, number, connection, drop).await?;
        let found = leased.ask(query).await;
        if let Some(connection) = leased.release().await {
            self.give_back(connection);
        }
        if found.is_err() {
            self.stop_client.checkpoint(token).await?;
        }
        found
    }
}

async fn search<D: Driver>(
    State(shop): State<Arc<Shop<D>>>,
    token: Option<Extension<Token>>,
    Query(mut fields): Query<HashMap<String, String>>,
) -> Result<String, (StatusCode, String)> {
    let query = fields.remove("query").unwrap_or_default();
    let found = match token {
        Some(Extension(token)) => shop.leased(&token, query).await,
        None => shop.plain(query).await,
    };
    found.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

async fn serve<D: Driver>(with_sdk: bool) -> Result<(), Failure> {
    let shop = Shop::<D> {
        url: std::env::var("DATABASE")?,
        name: "shop".parse()?,
        stop_client: StopClient::new(),
        free: Mutex::default(),
    };
    let mut router = Router::new().route("/search", get(search::<D>)).with_state(Arc::new(shop));
    if with_sdk {
        let class = Class::new("search", Duration::from_secs(1), Duration::from_secs(30));
        router = router.layer(TerminateLayer::new(&Controller::new([class])?, "search")?);
    }
    let port = std::env::var("PORT")?.parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    Ok(axum::serve(listener, router).into_future().await?)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [driver, way] = words.as_slice() else { return Err("give the driver and the way".into()) };
    let with_sdk = way == "sdk";
    match driver.as_str() {
        "tokio-postgres" => serve::<tokio_postgres::Client>(with_sdk).await,
        "mysql_async" => serve::<mysql_async::Conn>(with_sdk).await,
        "sqlx-postgres" => serve::<sqlx::PgConnection>(with_sdk).await,
        "sqlx-mariadb" => serve::<sqlx::MySqlConnection>(with_sdk).await,
        "diesel-postgres" => serve::<AsyncPgConnection>(with_sdk).await,
        "diesel-mariadb" => serve::<AsyncMysqlConnection>(with_sdk).await,
        _ => Err(format!("there is no driver {driver}").into()),
    }
}
