// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_request.h"

#include "base/printable.h"
#include "verbs/control_streams.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ib::softib {
namespace {

using verbs::control::Code;
using verbs::control::kMaxMessage;
using verbs::control::ReplyHeader;
using verbs::control::RequestHeader;

std::vector<std::byte> message(const RequestHeader& header, std::size_t input = 0) {
  std::vector<std::byte> bytes(sizeof(header) + input);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

RequestHeader header(Code code, std::uint32_t length = sizeof(RequestHeader),
                     std::uint32_t file = 0) {
  return {length, static_cast<std::uint32_t>(code), 77, file, 0};
}

ReplyHeader reply_header(const std::vector<std::byte>& reply) {
  ReplyHeader result;
  std::memcpy(&result, reply.data(), sizeof(result));
  return result;
}

TEST(ParseRequest, ReadsTheFieldsOfARequest) {
  const auto bytes = message(header(Code::CreateQp, 24 + 64, 5), 64);
  const ParsedRequest request = parse_request(bytes, {});
  EXPECT_EQ(request.status, Status::Ok) << request.reason;
  EXPECT_TRUE(request.answerable);
  EXPECT_EQ(request.code, Code::CreateQp);
  EXPECT_EQ(request.tag, 77u);
  EXPECT_EQ(request.file, 5u);
  EXPECT_EQ(request.input.size(), 64u);
  EXPECT_EQ(request.input.data(), bytes.data() + 24);
}

TEST(ParseRequest, WithoutAHeaderThereIsNobodyToAnswer) {
  for (std::size_t size = 0; size < sizeof(RequestHeader); ++size) {
    auto bytes = message(header(Code::Ping));
    bytes.resize(size);
    const ParsedRequest request = parse_request(bytes, {});
    EXPECT_EQ(request.status, Status::Malformed);
    EXPECT_FALSE(request.answerable);
  }
}

TEST(ParseRequest, LengthMustBeThatOfTheMessage) {
  for (const std::uint32_t length : {0u, 23u, 25u, 0xffffffffu}) {
    const ParsedRequest request = parse_request(message(header(Code::Ping, length)), {});
    EXPECT_EQ(request.status, Status::Malformed);
    EXPECT_TRUE(request.answerable);
    EXPECT_EQ(request.tag, 77u);
  }
}

TEST(ParseRequest, FlawsOfTheMessageAreSaid) {
  const auto bytes = message(header(Code::Ping));
  EXPECT_EQ(parse_request(bytes, {true, false}).status, Status::Malformed);
  EXPECT_EQ(parse_request(bytes, {false, true}).status, Status::InsufficientResources);
  RequestHeader reserved = header(Code::Ping);
  reserved.reserved = 1;
  EXPECT_EQ(parse_request(message(reserved), {}).status, Status::Malformed);
}

TEST(ParseRequest, UnknownCodesAreRefusedByNumber) {
  for (const std::uint32_t code : {0u, 38u, 60u, 63u, 82u, 0xffffffffu}) {
    const ParsedRequest request =
        parse_request(message({sizeof(RequestHeader), code, 77, 0, 0}), {});
    EXPECT_EQ(request.status, Status::NotSupported) << code;
    EXPECT_NE(request.reason.find(std::to_string(code)), std::string::npos);
  }
}

TEST(ParseRequest, CodesGoToTheRightKindOfFile) {
  EXPECT_EQ(parse_request(message(header(Code::Attach, 24, 1)), {}).status,
            Status::InvalidParameter);
  EXPECT_EQ(parse_request(message(header(Code::QueryCa, 24, 0)), {}).status,
            Status::InvalidParameter);
  EXPECT_EQ(parse_request(message(header(Code::QueryCa, 24, 1)), {}).status, Status::Ok);
}

TEST(ParseRequest, RequestsAboutStreamsAreOfTheProcess) {
  using verbs::control::StreamCode;
  for (const StreamCode code : {StreamCode::Listen, StreamCode::Unlisten, StreamCode::Connect,
                                StreamCode::Accept, StreamCode::Open, StreamCode::Grow}) {
    const auto number = static_cast<Code>(code);
    EXPECT_EQ(parse_request(message(header(number)), {}).status, Status::Ok);
    EXPECT_EQ(parse_request(message(header(number, 24, 1)), {}).status, Status::InvalidParameter);
    EXPECT_EQ(handles_of(number), code == StreamCode::Connect ? 1u : 0u);
  }
}

TEST(Reply, CarriesOutputOrText) {
  ReplyHeader header;
  header.tag = 9;
  header.information = 42;
  std::vector<std::byte> reply(sizeof header + 8, std::byte{3});
  finish_reply(header, reply);
  header = reply_header(reply);
  EXPECT_EQ(header.length, 32u);
  EXPECT_EQ(header.tag, 9u);
  EXPECT_EQ(header.information, 42u);
  EXPECT_EQ(header.status, 0u);
  EXPECT_EQ(reply.back(), std::byte{3});

  reply = make_error_reply(9, Status::NotFound, "nothing there");
  header = reply_header(reply);
  EXPECT_EQ(header.status, static_cast<std::uint32_t>(Status::NotFound));
  EXPECT_EQ(reply.size(), 24u + 13u);
  EXPECT_EQ(std::memcmp(reply.data() + 24, "nothing there", 13), 0);
}

TEST(Reply, IsNeverLongerThanAMessage) {
  const auto reply = make_error_reply(1, Status::IoError, std::string(2 * kMaxMessage, 'x'));
  EXPECT_EQ(reply.size(), kMaxMessage);
  EXPECT_EQ(reply_header(reply).length, kMaxMessage);
}

TEST(Printable, ShowsTextUpToTheFirstNul) {
  const std::array<char, 8> text{'a', '\n', '\x1b', '\xff', 'b', '\0', 'c', 'd'};
  EXPECT_EQ(printable(text), "a???b");
  const std::array<char, 2> full{'a', 'b'};
  EXPECT_EQ(printable(full), "ab");
}

}  // namespace
}  // namespace ib::softib
