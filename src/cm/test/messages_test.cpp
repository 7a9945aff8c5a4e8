// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every field of every message is where the specification's table has it, nothing else is set, and
// decoding gives back what was encoded. Places are byte and bit (from the most significant one)
// behind the MAD header.
#include "cm/test/sample_messages_test.h"

#include <gtest/gtest.h>

#include <random>

namespace ib::cm::test {
namespace {

struct Field {
  const char* name;
  unsigned byte, bit, width;
  std::uint64_t value;
};

// The bits of a message, one by one: slow, and independent of the structures.
class Bits {
 public:
  explicit Bits(const mad::Mad& mad) : mad_(mad) {}
  std::uint64_t take(unsigned byte, unsigned bit, unsigned width) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
      const unsigned at = (24 + byte) * 8 + bit + i;
      const auto mask = static_cast<std::byte>(0x80u >> (at % 8));
      value = value << 1 | ((mad_.at(at / 8) & mask) != std::byte{} ? 1 : 0);
      mad_.at(at / 8) &= ~mask;
    }
    return value;
  }
  void expect_bytes(unsigned byte, std::span<const std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(take(byte + static_cast<unsigned>(i), 0, 8), bytes[i]) << "byte " << byte + i;
    }
  }
  void expect_rest_is_zero() const {
    for (std::size_t i = 24; i < mad_.size(); ++i) {
      EXPECT_EQ(mad_[i], std::byte{}) << "byte " << i - 24;
    }
  }

 private:
  mad::Mad mad_;
};

void expect_header(const mad::Mad& mad, Attribute attribute, std::uint32_t modifier = 0) {
  const mad::MadHeader header = header_of(mad);
  EXPECT_EQ(header.base_version, 1);
  EXPECT_EQ(header.mgmt_class, 7);
  EXPECT_EQ(header.class_version, 2);
  EXPECT_EQ(header.method, 3);
  EXPECT_EQ(header.status, 0);
  EXPECT_EQ(header.transaction_id, kTransaction);
  EXPECT_EQ(header.attribute, static_cast<std::uint16_t>(attribute));
  EXPECT_EQ(header.modifier, modifier);
}

void expect_fields(Bits& bits, std::initializer_list<Field> fields) {
  for (const Field& field : fields) {
    EXPECT_EQ(bits.take(field.byte, field.bit, field.width), field.value) << field.name;
  }
}

// A path of REQ from this byte on.
void expect_path(Bits& bits, unsigned at, const Path& path) {
  expect_fields(bits, {{"local LID", at, 0, 16, path.slid},
                       {"remote LID", at + 2, 0, 16, path.dlid},
                       {"flow label", at + 36, 0, 20, path.flow_label},
                       {"rate", at + 39, 2, 6, path.rate},
                       {"traffic class", at + 40, 0, 8, path.traffic_class},
                       {"hop limit", at + 41, 0, 8, path.hop_limit},
                       {"SL", at + 42, 0, 4, path.sl},
                       {"subnet local", at + 42, 4, 1, 1},
                       {"ACK timeout", at + 43, 0, 5, path.ack_timeout}});
  bits.expect_bytes(at + 4, path.sgid);
  bits.expect_bytes(at + 20, path.dgid);
}

template <class A, class B>
bool same(const A& a, const B& b) {
  const auto x = a.view(), y = b.view();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

TEST(Messages, Req) {
  const Req req = sample_req();
  const mad::Mad mad = encode(req);
  expect_header(mad, Attribute::Req, 0xff);
  Bits bits(mad);
  expect_fields(bits, {{"local communication ID", 0, 0, 32, 0x1111'2222},
                       {"vendor ID", 5, 0, 24, 0xaabbcc},
                       {"service ID", 8, 0, 64, 0x1000'ce00'1234'5678},
                       {"local CA GUID", 16, 0, 64, 0x0253'4600'0001'0000},
                       {"local Q_Key", 28, 0, 32, 0x8877'6655},
                       {"local QPN", 32, 0, 24, 0xfedcba},
                       {"responder resources", 35, 0, 8, 0x21},
                       {"local EECN", 36, 0, 24, 0},
                       {"initiator depth", 39, 0, 8, 0x43},
                       {"remote EECN", 40, 0, 24, 0},
                       {"remote CM response timeout", 43, 0, 5, 0x1b},
                       {"transport service type", 43, 5, 2, 1},
                       {"end-to-end flow control", 43, 7, 1, 1},
                       {"starting PSN", 44, 0, 24, 0xabcdef},
                       {"local CM response timeout", 47, 0, 5, 0x15},
                       {"retry count", 47, 5, 3, 6},
                       {"P_Key", 48, 0, 16, 0x8001},
                       {"path MTU", 50, 0, 4, 4},
                       {"RDC exists", 50, 4, 1, 1},
                       {"RNR retry count", 50, 5, 3, 5},
                       {"max CM retries", 51, 0, 4, 0xe},
                       {"SRQ", 51, 4, 1, 1},
                       {"extended transport type", 51, 5, 3, 5}});
  expect_path(bits, 52, req.primary);
  expect_path(bits, 96, *req.alternate);
  bits.expect_bytes(140, req.private_data.view());
  bits.expect_rest_is_zero();

  const Req back = decode_req(mad);
  EXPECT_EQ(encode(back), mad);
  EXPECT_EQ(back.primary, req.primary);
  EXPECT_EQ(back.alternate, req.alternate);
  EXPECT_EQ(back.vendor, req.vendor);
  EXPECT_TRUE(same(back.private_data, req.private_data));
}

TEST(Messages, AReqWithoutAnAlternatePathHasNone) {
  Req req = sample_req();
  req.alternate.reset();
  EXPECT_FALSE(decode_req(encode(req)).alternate.has_value());
}

TEST(Messages, Rep) {
  const Rep rep = sample_rep();
  const mad::Mad mad = encode(rep);
  expect_header(mad, Attribute::Rep, 0xff);
  Bits bits(mad);
  expect_fields(bits, {{"local communication ID", 0, 0, 32, 0x3333'4444},
                       {"remote communication ID", 4, 0, 32, 0x1111'2222},
                       {"local Q_Key", 8, 0, 32, 0x8877'6655},
                       {"local QPN", 12, 0, 24, 0xfedcba},
                       {"vendor ID high", 15, 0, 8, 0xaa},
                       {"local EECN", 16, 0, 24, 0x123456},
                       {"vendor ID middle", 19, 0, 8, 0xbb},
                       {"starting PSN", 20, 0, 24, 0xabcdef},
                       {"vendor ID low", 23, 0, 8, 0xcc},
                       {"responder resources", 24, 0, 8, 0x21},
                       {"initiator depth", 25, 0, 8, 0x43},
                       {"target ACK delay", 26, 0, 5, 0x15},
                       {"failover accepted", 26, 5, 2, 2},
                       {"end-to-end flow control", 26, 7, 1, 1},
                       {"RNR retry count", 27, 0, 3, 5},
                       {"SRQ", 27, 3, 1, 1},
                       {"local CA GUID", 28, 0, 64, 0x0253'4600'0001'0000}});
  bits.expect_bytes(36, rep.private_data.view());
  bits.expect_rest_is_zero();
  const Rep back = decode_rep(mad);
  EXPECT_EQ(encode(back), mad);
  EXPECT_EQ(back.ids, rep.ids);
  EXPECT_EQ(back.vendor, rep.vendor);
}

constexpr Field kLocalId{"local communication ID", 0, 0, 32, 0x3333'4444};
constexpr Field kRemoteId{"remote communication ID", 4, 0, 32, 0x1111'2222};

TEST(Messages, Rtu) {
  const mad::Mad mad = encode(sample_rtu());
  expect_header(mad, Attribute::Rtu);
  Bits bits(mad);
  expect_fields(bits, {kLocalId, kRemoteId});
  bits.expect_bytes(8, sample_rtu().private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(decode_rtu(mad)), mad);
}

TEST(Messages, Rej) {
  const mad::Mad mad = encode(sample_rej());
  expect_header(mad, Attribute::Rej);
  Bits bits(mad);
  expect_fields(bits, {kLocalId,
                       kRemoteId,
                       {"message rejected", 8, 0, 2, 1},
                       {"reject info length", 9, 0, 7, 72},
                       {"reason", 10, 0, 16, 28}});
  bits.expect_bytes(12, sample_rej().info.view());
  bits.expect_bytes(84, sample_rej().private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(*decode_rej(mad)), mad);
}

TEST(Messages, Mra) {
  const mad::Mad mad = encode(sample_mra());
  expect_header(mad, Attribute::Mra);
  Bits bits(mad);
  expect_fields(
      bits,
      {kLocalId, kRemoteId, {"message MRAed", 8, 0, 2, 2}, {"service timeout", 9, 0, 5, 0x15}});
  bits.expect_bytes(10, sample_mra().private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(decode_mra(mad)), mad);
}

TEST(Messages, DreqAndDrep) {
  const mad::Mad dreq = encode(sample_dreq());
  expect_header(dreq, Attribute::Dreq);
  Bits bits(dreq);
  expect_fields(bits, {kLocalId, kRemoteId, {"remote QPN", 8, 0, 24, 0xfedcba}});
  bits.expect_bytes(12, sample_dreq().private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(decode_dreq(dreq)), dreq);

  const mad::Mad drep = encode(sample_drep());
  expect_header(drep, Attribute::Drep);
  Bits others(drep);
  expect_fields(others, {kLocalId, kRemoteId});
  others.expect_bytes(8, sample_drep().private_data.view());
  others.expect_rest_is_zero();
  EXPECT_EQ(encode(decode_drep(drep)), drep);
}

TEST(Messages, Lap) {
  const Lap lap = sample_lap();
  const mad::Mad mad = encode(lap);
  expect_header(mad, Attribute::Lap);
  Bits bits(mad);
  const Path& path = lap.alternate;
  expect_fields(bits, {kLocalId,
                       kRemoteId,
                       {"remote QPN", 12, 0, 24, 0xfedcba},
                       {"remote CM response timeout", 15, 0, 5, 0x15},
                       {"alternate local LID", 20, 0, 16, path.slid},
                       {"alternate remote LID", 22, 0, 16, path.dlid},
                       {"alternate flow label", 56, 0, 20, path.flow_label},
                       {"alternate traffic class", 59, 0, 8, path.traffic_class},
                       {"alternate hop limit", 60, 0, 8, path.hop_limit},
                       {"alternate packet rate", 61, 2, 6, path.rate},
                       {"alternate SL", 62, 0, 4, path.sl},
                       {"alternate subnet local", 62, 4, 1, 1},
                       {"alternate ACK timeout", 63, 0, 5, path.ack_timeout}});
  bits.expect_bytes(24, path.sgid);
  bits.expect_bytes(40, path.dgid);
  bits.expect_bytes(64, lap.private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(decode_lap(mad)), mad);
}

TEST(Messages, Apr) {
  const mad::Mad mad = encode(sample_apr());
  expect_header(mad, Attribute::Apr);
  Bits bits(mad);
  expect_fields(bits, {kLocalId,
                       kRemoteId,
                       {"additional information length", 8, 0, 8, 50},
                       {"AP status", 9, 0, 8, 13}});
  bits.expect_bytes(12, sample_apr().info.view());
  bits.expect_bytes(84, sample_apr().private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(*decode_apr(mad)), mad);
}

TEST(Messages, SidrReqAndSidrRep) {
  const mad::Mad req = encode(sample_sidr_req());
  expect_header(req, Attribute::SidrReq);
  Bits bits(req);
  expect_fields(bits, {{"request ID", 0, 0, 32, 0x5555'6666},
                       {"P_Key", 4, 0, 16, 0x8001},
                       {"service ID", 8, 0, 64, 0x1000'ce00'1234'5678}});
  bits.expect_bytes(16, sample_sidr_req().private_data.view());
  bits.expect_rest_is_zero();
  EXPECT_EQ(encode(decode_sidr_req(req)), req);

  const mad::Mad rep = encode(sample_sidr_rep());
  expect_header(rep, Attribute::SidrRep, 0xff);
  Bits others(rep);
  expect_fields(others, {{"request ID", 0, 0, 32, 0x5555'6666},
                         {"status", 4, 0, 8, 4},
                         {"additional information length", 5, 0, 8, 71},
                         {"vendor ID high", 6, 0, 16, 0xaabb},
                         {"QPN", 8, 0, 24, 0xfedcba},
                         {"vendor ID low", 11, 0, 8, 0xcc},
                         {"service ID", 12, 0, 64, 0x1000'ce00'1234'5678},
                         {"Q_Key", 20, 0, 32, 0x8877'6655}});
  others.expect_bytes(24, sample_sidr_rep().info.view());
  others.expect_bytes(96, sample_sidr_rep().private_data.view());
  others.expect_rest_is_zero();
  EXPECT_EQ(encode(*decode_sidr_rep(rep)), rep);
}

TEST(Messages, ALengthBeyondItsFieldIsMalformed) {
  mad::Mad mad = encode(sample_rej());
  mad[24 + 9] = static_cast<std::byte>(73 << 1);
  EXPECT_EQ(decode_rej(mad).error(), Status::Malformed);
  mad = encode(sample_apr());
  mad[24 + 8] = std::byte{73};
  EXPECT_EQ(decode_apr(mad).error(), Status::Malformed);
  mad = encode(sample_sidr_rep());
  mad[24 + 5] = std::byte{255};
  EXPECT_EQ(decode_sidr_rep(mad).error(), Status::Malformed);
}

// Decoding loses nothing but reserved bits, whatever a peer sends.
TEST(MessagesProperty, WhatWasDecodedOnceIsStable) {
  std::mt19937 random(5);  // NOLINT(bugprone-random-generator-seed): the same inputs in every run
  for (int i = 0; i < 2000; ++i) {
    mad::Mad mad;
    for (std::byte& byte : mad) byte = static_cast<std::byte>(random());
    const mad::Mad req = encode(decode_req(mad)), rep = encode(decode_rep(mad));
    EXPECT_EQ(encode(decode_req(req)), req);
    EXPECT_EQ(encode(decode_rep(rep)), rep);
    const mad::Mad lap = encode(decode_lap(mad)), mra = encode(decode_mra(mad));
    EXPECT_EQ(encode(decode_lap(lap)), lap);
    EXPECT_EQ(encode(decode_mra(mra)), mra);
  }
}

}  // namespace
}  // namespace ib::cm::test
