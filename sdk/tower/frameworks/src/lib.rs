#![doc = include_str!("../README.md")]

pub mod actix;
pub mod axum;
pub mod sqlx;
