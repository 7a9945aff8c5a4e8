// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The compiled half of Asio (ASIO_SEPARATE_COMPILATION), once, for the whole layer.
//
// GCC warns inside it (g++ 12, after inlining), so the pragma cannot be around an #include in our
// files.
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <asio/impl/src.hpp>
