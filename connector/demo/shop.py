"""The shop: six tables with most of MySQL's ordinary column types, one of them without a primary key."""

from __future__ import annotations

from typing import Final

SCHEMA: Final = "shop"

TABLES: Final = (
    """CREATE TABLE customers (
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        name VARCHAR(80) CHARACTER SET utf8mb4 NOT NULL,
        email VARCHAR(120) CHARACTER SET latin1 NULL,
        country CHAR(2) CHARACTER SET utf8mb3 NOT NULL,
        born DATE NULL,
        vip BIT(1) NOT NULL DEFAULT b'0',
        tier ENUM('bronze','silver','gold') NOT NULL DEFAULT 'bronze',
        wants SET('mail','sms','phone','post') NULL,
        balance DECIMAL(20,4) NOT NULL DEFAULT 0,
        created DATETIME(6) NOT NULL,
        seen TIMESTAMP(3) NULL,
        notes TEXT NULL,
        avatar BLOB NULL,
        prefs JSON NULL,
        UNIQUE KEY by_email (email))""",
    """CREATE TABLE products (
        id INT UNSIGNED NOT NULL PRIMARY KEY,
        sku CHAR(12) NOT NULL,
        title VARCHAR(200) NOT NULL,
        price DECIMAL(65,30) NOT NULL,
        weight FLOAT NULL,
        volume DOUBLE NULL,
        stock MEDIUMINT UNSIGNED NOT NULL,
        rating TINYINT NULL,
        launched YEAR NULL,
        opens TIME(2) NULL,
        mask BIT(17) NULL,
        photo MEDIUMBLOB NULL,
        body LONGTEXT NULL,
        spec JSON NULL)""",
    """CREATE TABLE orders (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        customer_id BIGINT UNSIGNED NOT NULL,
        placed DATETIME NOT NULL,
        state ENUM('new','paid','sent','gone') NOT NULL,
        total DECIMAL(12,2) NOT NULL,
        version SMALLINT NOT NULL DEFAULT 0,
        KEY by_customer (customer_id))""",
    """CREATE TABLE order_lines (
        order_id BIGINT NOT NULL,
        line_no SMALLINT UNSIGNED NOT NULL,
        product_id INT UNSIGNED NOT NULL,
        quantity MEDIUMINT NOT NULL,
        price DECIMAL(18,6) NOT NULL,
        PRIMARY KEY (order_id, line_no))""",
    """CREATE TABLE payments (
        id BINARY(16) NOT NULL PRIMARY KEY,
        order_id BIGINT NOT NULL,
        amount DECIMAL(12,2) NOT NULL,
        reference BIGINT UNSIGNED NOT NULL,
        paid TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        raw VARBINARY(255) NULL)""",
    """CREATE TABLE clicks (
        at DATETIME(3) NOT NULL,
        visitor CHAR(8) NOT NULL,
        url TINYTEXT NOT NULL,
        ms SMALLINT UNSIGNED NULL,
        extra TINYBLOB NULL)""",
)
