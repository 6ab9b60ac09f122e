//! Tests of leases with connections of a pool of sqlx.

use std::sync::Arc;
use std::time::Duration;

use bywash_tower::{LeaseError, Leased, Reason, StopClient, Token};
use bywash_tower_frameworks::sqlx::{Failure, MARIADB, POSTGRES, lease};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Connection, Database, Executor, MySql, Pool, Postgres};

use crate::server::{Framework, Server};
use crate::site::{DatabaseKind, Site, leave_after, patiently};

type Lease<D> = Result<Leased<PoolConnection<D>>, Failure>;

/// A database of the tests. Its functions are the statements of both databases.
trait Shop: Database {
    const KIND: DatabaseKind;
    const SCHEME: &str;

    fn lease(
        stop_client: &StopClient,
        token: &Token,
        pool: &Pool<Self>,
    ) -> impl Future<Output = Lease<Self>> + Send;

    fn run(
        connection: &mut Self::Connection,
        statement: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Runs a query that returns one whole number.
    fn number(connection: &mut Self::Connection, query: &str) -> impl Future<Output = i64> + Send;
}

macro_rules! shop {
    ($database:ty, $kind:expr, $scheme:expr, $number:expr) => {
        impl Shop for $database {
            const KIND: DatabaseKind = $kind;
            const SCHEME: &str = $scheme;

            async fn lease(
                stop_client: &StopClient,
                token: &Token,
                pool: &Pool<Self>,
            ) -> Lease<Self> {
                lease(stop_client, token, &"shop".parse().unwrap(), pool, $number).await
            }

            async fn run(
                connection: &mut Self::Connection,
                statement: &str,
            ) -> Result<(), sqlx::Error> {
                connection.execute(AssertSqlSafe(statement)).await.map(drop)
            }

            async fn number(connection: &mut Self::Connection, query: &str) -> i64 {
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(connection).await.unwrap()
            }
        }
    };
}

shop!(Postgres, DatabaseKind::Postgres, "postgres", POSTGRES);
shop!(MySql, DatabaseKind::MariaDb, "mysql", MARIADB);

/// Starts the set-up for a database, with a pool of one connection. Returns `None` if there is no
/// such database.
async fn site<D: Shop>() -> Option<(Site, Pool<D>)> {
    let site = Site::new(D::KIND)?;
    let url = format!("{}://shop:lab@{}/shop", D::SCHEME, site.address);
    let pool = sqlx::pool::PoolOptions::new().max_connections(1).connect(&url).await.unwrap();
    Some((site, pool))
}

/// Returns the number of the connection by which the daemon knows it.
async fn number<D: Shop>(connection: &mut D::Connection) -> u64 {
    let query = if D::KIND == DatabaseKind::Postgres { POSTGRES } else { MARIADB };
    D::number(connection, query).await.cast_unsigned()
}

async fn a_stopped_query<D: Shop>() {
    let Some((site, pool)) = site::<D>().await else { return };
    let token = site.request("r1");
    let mut leased = D::lease(&site.stop_client, &token, &pool).await.unwrap();
    let number = number::<D>(&mut leased).await;
    let watch = site.watch().await;
    // The gateway tells the daemon first, so only the daemon knows the reason.
    let stop = async {
        watch.until_works(number).await;
        site.gateway().await.stop("r1").await;
    };
    let (end, ()) = tokio::join!(D::run(&mut leased, D::KIND.long()), stop);
    end.unwrap_err();
    drop(leased.release().await.expect("nothing is aimed at it"));
    let over = site.stop_client.checkpoint(&token).await.unwrap_err();
    assert_eq!(over.reason, Reason::ClientLeft);
    // The only connection of the pool serves the next request.
    let mut leased = D::lease(&site.stop_client, &site.request("r2"), &pool).await.unwrap();
    assert_eq!(self::number::<D>(&mut leased).await, number);
    drop(leased.release().await.unwrap());
    // A later query of the stopped request does not begin. It does not wait for the pool either.
    let mut only = pool.acquire().await.unwrap();
    let later = D::lease(&site.stop_client, &token, &pool).await;
    assert!(matches!(later, Err(Failure::Lease(LeaseError::Stopped(_)))));
    assert_eq!(self::number::<D>(&mut only).await, number);
    assert_eq!(site.stop_client.stats().closed, 0);
}

async fn a_taken_connection<D: Shop>() {
    let Some((site, pool)) = site::<D>().await else { return };
    let number = number::<D>(&mut pool.acquire().await.unwrap()).await;
    let mut other = site.gateway().await;
    other.ask(&format!("LEASE other shop {number}")).await;
    let mut leased = D::lease(&site.stop_client, &site.request("r1"), &pool).await.unwrap();
    assert_ne!(self::number::<D>(&mut leased).await, number);
    assert_eq!((site.stop_client.stats().taken, site.stop_client.stats().closed), (1, 1));
    drop(leased.release().await.unwrap());
}

async fn a_transaction<D: Shop>()
where
    for<'c> <D as Database>::Connection: Connection<Database = D>,
{
    let Some((site, pool)) = site::<D>().await else { return };
    // The databases outlive the test. The name differs from those of the other tests' tables.
    let drop_table = "DROP TABLE IF EXISTS rust_orders";
    for statement in [drop_table, "CREATE TABLE rust_orders (number INT PRIMARY KEY)"] {
        D::run(&mut pool.acquire().await.unwrap(), statement).await.unwrap();
    }
    for (row, commits) in [(1, false), (2, true)] {
        let token = site.request(&format!("r{row}"));
        let mut leased = D::lease(&site.stop_client, &token, &pool).await.unwrap();
        let mut transaction = leased.begin().await.unwrap();
        let insert = format!("INSERT INTO rust_orders VALUES ({row})");
        D::run(&mut transaction, &insert).await.unwrap();
        token.leave();
        // The end of a transaction passes, although the request is over.
        let ended = if commits { transaction.commit().await } else { transaction.rollback().await };
        ended.unwrap();
        drop(leased.release().await);
    }
    let mut other = pool.acquire().await.unwrap();
    assert_eq!(D::number(&mut other, "SELECT COUNT(*) FROM rust_orders WHERE number = 1").await, 0);
    assert_eq!(D::number(&mut other, "SELECT COUNT(*) FROM rust_orders WHERE number = 2").await, 1);
    D::run(&mut other, drop_table).await.unwrap();
}

async fn a_client_that_leaves<D: Shop>() {
    for framework in Server::FRAMEWORKS {
        let Some((site, pool)) = site::<D>().await else { return };
        site.until_cancelled(async || is_left_by_its_client(framework, &site, &pool).await).await;
    }
}

async fn is_left_by_its_client<D: Shop>(framework: Framework, site: &Site, pool: &Pool<D>) {
    let number = number::<D>(&mut patiently(pool.acquire()).await.unwrap()).await;
    let (stop_client, of_handler) = (site.stop_client.clone(), pool.clone());
    let server = Server::with(
        framework,
        &site.controller,
        Arc::new(move |token| {
            let (stop_client, pool) = (stop_client.clone(), of_handler.clone());
            Box::pin(async move {
                let mut leased = D::lease(&stop_client, &token, &pool).await?;
                let found = D::run(&mut leased, D::KIND.long()).await;
                drop(leased.release().await);
                stop_client.checkpoint(&token).await?;
                Ok(found?)
            })
        }),
    )
    .await;
    let client = server.ask("/query", "").await;
    let watch = site.watch().await;
    watch.until_works(number).await;
    drop(client);
    watch.until_rests(number).await;
    // The connection is closed, and the pool opens another one.
    let mut other = patiently(pool.acquire()).await.unwrap();
    assert_ne!(self::number::<D>(&mut other).await, number, "{framework:?}");
}

/// Checks that of two requests which share the only connection, only the stopped one is hit.
async fn an_innocent_neighbour<D: Shop>() {
    let Some((site, pool)) = site::<D>().await else { return };
    let query = D::KIND.long().replace("20", "0.003");
    let mut hit = 0;
    for round in 0..200_u64 {
        let victim = site.request(&format!("a{round}"));
        let mut leased = D::lease(&site.stop_client, &victim, &pool).await.unwrap();
        // Stop at a different moment of the query in each round, in some after its end.
        let stop = leave_after(victim, Duration::from_micros(round * 25));
        let (end, ()) = tokio::join!(D::run(&mut leased, &query), stop);
        hit += u32::from(end.is_err());
        drop(leased.release().await);
        let innocent = site.request(&format!("b{round}"));
        let mut leased = D::lease(&site.stop_client, &innocent, &pool).await.unwrap();
        D::run(&mut leased, &query).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        drop(leased.release().await);
    }
    println!("{:?} with sqlx: {hit} of 200 were hit", D::KIND);
    assert!(hit > 10, "only {hit} of 200 were hit at all");
}

macro_rules! on_both {
    ($($name:ident: $test:ident,)*) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$test::<sqlx::Postgres>().await;
            })*
        }

        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$test::<sqlx::MySql>().await;
            })*
        }
    };
}

on_both! {
    a_query_ends_with_its_request_and_its_connection_serves_others: a_stopped_query,
    a_connection_that_another_has_leased_is_replaced: a_taken_connection,
    the_end_of_a_transaction_passes: a_transaction,
    a_client_that_leaves_ends_its_query: a_client_that_leaves,
    of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit: an_innocent_neighbour,
}
