// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every message as bytes that were put together by hand from the layouts, and as tshark reads it.
// tshark has fields of the BSDH and of Hello; of the others it takes the kind.
#include "ulp/sdp/messages.h"

#include "ulp/sdp/hello.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ib::sdp {
namespace {

using Raw = std::vector<std::uint8_t>;

Raw from_hex(const std::string& text) {
  Raw bytes;
  std::string digits;
  for (const char letter : text) {
    if (letter == ' ') continue;
    digits += letter;
    if (digits.size() != 2) continue;
    bytes.push_back(static_cast<std::uint8_t>(std::strtoul(digits.c_str(), nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

std::span<const std::byte> as_message(const Raw& bytes) {
  return std::as_bytes(std::span(bytes));
}

template <class Bytes>
Raw raw(const Bytes& bytes) {
  Raw out;
  for (const auto byte : bytes) out.push_back(static_cast<std::uint8_t>(byte));
  return out;
}

Message message_of(Mid mid) {
  Message message;
  message.mid = mid;
  message.buffers = 0x0102;
  message.sequence = 0x11223344;
  message.acknowledged = 0x55667788;
  return message;
}

struct Golden {
  Message message;
  std::string bytes;  // of the header
};

std::vector<Golden> all_messages() {
  const std::string numbers = "11223344 55667788";
  std::vector<Golden> all;
  for (const auto& [mid, name] :
       std::vector<std::pair<Mid, std::string>>{{Mid::DisConn, "02"},
                                                {Mid::AbortConn, "03"},
                                                {Mid::SendSm, "04"},
                                                {Mid::SrcAvailCancel, "08"},
                                                {Mid::SinkAvailCancel, "09"},
                                                {Mid::SinkCancelAck, "0a"},
                                                {Mid::SuspCommAck, "0e"}}) {
    all.push_back({message_of(mid), name + "00 0102 00000010" + numbers});
  }
  Message data = message_of(Mid::Data);
  data.flags = kOobPresent;
  data.payload = 5;
  all.push_back({data, "ff01 0102 00000015" + numbers});
  for (const auto& [mid, name] :
       std::vector<std::pair<Mid, std::string>>{{Mid::RdmaWrCompl, "05"},
                                                {Mid::RdmaRdCompl, "06"},
                                                {Mid::ChRcvBuf, "0b"},
                                                {Mid::ChRcvBufAck, "0c"}}) {
    Message message = message_of(mid);
    message.size = 0xa1b2c3d4;
    all.push_back({message, name + "00 0102 00000014" + numbers + "a1b2c3d4"});
  }
  for (const auto& [half, mode, change] :
       std::vector<std::tuple<bool, Mode, std::string>>{{false, Mode::Buffered, "00"},
                                                        {false, Mode::Combined, "10"},
                                                        {false, Mode::Pipelined, "20"},
                                                        {true, Mode::Buffered, "80"},
                                                        {true, Mode::Combined, "90"},
                                                        {true, Mode::Pipelined, "a0"}}) {
    Message message = message_of(Mid::ModeChange);
    message.of_sending_half = half;
    message.mode = mode;
    all.push_back({message, "0700 0102 00000014" + numbers + change + "000000"});
  }
  Message suspend = message_of(Mid::SuspComm);
  suspend.address = service_id(0x1234);
  all.push_back({suspend, "0d00 0102 00000018" + numbers + "0000000000011234"});
  Message source = message_of(Mid::SrcAvail);
  source.flags = kOobPending | kRequestPipelined;
  source.size = 0x00010000;
  source.rkey = 0xdeadbeef;
  source.address = 0x0123456789abcdef;
  source.payload = 1;
  all.push_back({source, "fe06 0102 00000021" + numbers + "00010000 deadbeef 0123456789abcdef"});
  Message sink = source;
  sink.mid = Mid::SinkAvail;
  sink.flags = 0;
  sink.payload = 0;
  sink.non_discards = 7;
  all.push_back(
      {sink, "fd00 0102 00000024" + numbers + "00010000 deadbeef 0123456789abcdef 00000007"});
  return all;
}

Raw whole(const Golden& golden) {
  Raw bytes = from_hex(golden.bytes);
  bytes.resize(bytes.size() + golden.message.payload, 0x78);
  return bytes;
}

TEST(SdpMessages, EachIsWrittenAsTheLayoutHasIt) {
  for (const Golden& golden : all_messages()) {
    const HeaderBytes written = write(golden.message);
    EXPECT_EQ(Raw(written.bytes.begin(), written.bytes.begin() + written.length),
              from_hex(golden.bytes));
  }
}

TEST(SdpMessages, EachIsReadBack) {
  for (const Golden& golden : all_messages()) {
    const Raw bytes = whole(golden);
    const auto message = parse(as_message(bytes));
    ASSERT_TRUE(message.has_value()) << golden.bytes;
    EXPECT_EQ(message->mid, golden.message.mid);
    EXPECT_EQ(message->flags, golden.message.flags);
    EXPECT_EQ(message->buffers, 0x0102);
    EXPECT_EQ(message->sequence, 0x11223344u);
    EXPECT_EQ(message->acknowledged, 0x55667788u);
    EXPECT_EQ(message->size, golden.message.size);
    EXPECT_EQ(message->rkey, golden.message.rkey);
    EXPECT_EQ(message->address, golden.message.address);
    EXPECT_EQ(message->non_discards, golden.message.non_discards);
    EXPECT_EQ(message->mode, golden.message.mode);
    EXPECT_EQ(message->of_sending_half, golden.message.of_sending_half);
    EXPECT_EQ(message->payload, golden.message.payload);
    EXPECT_EQ(message->header_length, bytes.size() - golden.message.payload);
  }
}

TEST(SdpMessages, AMessageThatIsCutOrHasALengthOfItsOwnIsRefused) {
  for (const Golden& golden : all_messages()) {
    Raw bytes = whole(golden);
    bytes.pop_back();
    EXPECT_EQ(parse(as_message(bytes)).error(), Status::Malformed) << golden.bytes;
    bytes.resize(bytes.size() + 2);
    EXPECT_EQ(parse(as_message(bytes)).error(), Status::Malformed) << golden.bytes;
  }
  EXPECT_EQ(parse({}).error(), Status::Malformed);
}

TEST(SdpMessages, OnlyThreeKindsHaveAPayload) {
  for (Golden golden : all_messages()) {
    golden.message.payload += 1;
    const HeaderBytes header = write(golden.message);
    Raw bytes(header.bytes.begin(), header.bytes.begin() + header.length);
    bytes.resize(bytes.size() + golden.message.payload);
    const Mid mid = golden.message.mid;
    const bool may = mid == Mid::Data || mid == Mid::SrcAvail || mid == Mid::SinkAvail;
    EXPECT_EQ(parse(as_message(bytes)).has_value(), may) << golden.bytes;
  }
}

TEST(SdpMessages, UnknownKindsAndModesAreRefused) {
  for (unsigned mid = 0; mid < 256; ++mid) {
    Raw bytes = from_hex("0000 0001 00000010 00000001 00000000");
    bytes[0] = static_cast<std::uint8_t>(mid);
    bytes.resize(std::max<std::size_t>(16, header_length(static_cast<Mid>(mid))));
    bytes[7] = static_cast<std::uint8_t>(bytes.size());
    const bool is_known = (mid >= 0x02 && mid <= 0x0e) || mid >= 0xfd;
    EXPECT_EQ(parse(as_message(bytes)).has_value(), is_known) << mid;
  }
  EXPECT_FALSE(
      parse(as_message(from_hex("0700 0001 00000014 00000001 00000000 30000000"))).has_value());
}

Hello sample_hello() {
  Hello hello;
  hello.buffers = 32;
  hello.max_adverts = 4;
  hello.capabilities = 2;
  hello.desired_remote_size = 0x2000;
  hello.local_size = 0x4000;
  hello.port = 0xbeef;
  hello.source[12] = 10;
  hello.source[15] = 1;
  hello.destination[12] = 10;
  hello.destination[15] = 2;
  hello.extended_adverts = 0x0104;
  return hello;
}

const std::string kHello =
    "0000 0020 0000005c 00000000 00000000 22 42 00 04 00002000 00004000 beef 0000"
    "000000000000000000000000 0a000001 000000000000000000000000 0a000002 0000 0104";

TEST(SdpHello, IsWrittenAsTheLayoutHasItAndReadBack) {
  Raw expected = from_hex(kHello);
  expected.resize(kHelloBytes);
  EXPECT_EQ(raw(write(sample_hello())), expected);
  const auto hello = parse_hello(as_message(expected));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(raw(write(*hello)), expected);
}

TEST(SdpHello, HasIpv6Addresses) {
  Hello hello = sample_hello();
  hello.ip_version = 6;
  for (std::uint8_t i = 0; i < 16; ++i) hello.source[i] = static_cast<std::uint8_t>(0xf0 + i);
  const auto bytes = write(hello);
  EXPECT_EQ(static_cast<unsigned>(bytes[17]), 0x62u);
  const auto read = parse_hello(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->source, hello.source);
  EXPECT_EQ(read->ip_version, 6);
}

TEST(SdpHello, TheAnswerIsWrittenAsTheLayoutHasItAndReadBack) {
  Raw expected = from_hex("0100 0010 000000c4 00000000 00000000 22 00 00 03 00004000");
  expected.resize(kHelloAckBytes);
  EXPECT_EQ(raw(write(HelloAck{16, 3, 0x4000})), expected);
  const auto ack = parse_hello_ack(as_message(expected));
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->buffers, 16);
  EXPECT_EQ(ack->max_adverts, 3);
  EXPECT_EQ(ack->actual_size, 0x4000u);
}

TEST(SdpHello, ADifferentMajorVersionIsNotSupported) {
  auto hello = write(sample_hello());
  hello[16] = std::byte{0x2f};
  EXPECT_TRUE(parse_hello(hello).has_value());
  hello[16] = std::byte{0x12};
  EXPECT_EQ(parse_hello(hello).error(), Status::NotSupported);
}

TEST(SdpHello, WhatMakesNoSenseIsRefused) {
  const auto refused = [](std::size_t at, std::uint8_t value) {
    auto bytes = write(sample_hello());
    bytes[at] = std::byte{value};
    return parse_hello(bytes).error() == Status::Malformed;
  };
  EXPECT_TRUE(refused(0, 1));      // another message
  EXPECT_TRUE(refused(17, 0x50));  // IP version 5
  EXPECT_TRUE(refused(19, 0));     // no advertisement
  EXPECT_TRUE(refused(26, 0));     // receive buffers of 0 bytes
  const auto bytes = write(sample_hello());
  EXPECT_FALSE(parse_hello(std::span(bytes).first(kHelloBytes - 1)).has_value());
  auto ack = write(HelloAck{16, 3, 0x4000});
  ack[19] = std::byte{0};
  EXPECT_FALSE(parse_hello_ack(ack).has_value());
}

// -- tshark.

// One RC SEND each: LRH, BTH, the message, CRCs of 0, as an ERF record in a pcap (tshark rejects
// linktype 247).
class Capture {
 public:
  Capture() {
    put_native({0xa1b2c3d4,
                std::endian::native == std::endian::little ? 0x0004'0002u : 0x0002'0004u, 0, 0,
                65535, 197});
  }
  void add(const Raw& message) {
    Raw body = from_hex("04 40 ffff 00000012 00000005");
    body.insert(body.end(), message.begin(), message.end());
    while (body.size() % 4 != 0) body.push_back(0);
    body[1] =
        static_cast<std::uint8_t>(0x40 | (body.size() - 12 - message.size()) << 4);  // pad count
    body.insert(body.end(), 4, 0);
    Raw packet = from_hex("00 02 0002 0000 0001");
    packet[5] = static_cast<std::uint8_t>((8 + body.size()) / 4);
    packet.insert(packet.end(), body.begin(), body.end());
    packet.insert(packet.end(), 2, 0);
    const auto length = static_cast<std::uint32_t>(packet.size());
    put_native({0, 0, length + 16, length + 16});
    const Raw erf = from_hex("0000000000000000 15 04");
    bytes_.insert(bytes_.end(), erf.begin(), erf.end());
    for (const std::uint32_t each : {length + 16, 0u, length}) {
      bytes_.push_back(static_cast<std::uint8_t>(each >> 8));
      bytes_.push_back(static_cast<std::uint8_t>(each));
    }
    bytes_.insert(bytes_.end(), packet.begin(), packet.end());
  }
  // The values of the fields, in one line for each packet.
  std::vector<std::string> dissect(const std::string& fields) const {
    const std::string file = testing::TempDir() + "softib_sdp.pcap";
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
    const std::string command = "tshark -r '" + file +
                                "' -d infiniband,infiniband_sdp -T fields -E separator=/s" +
                                fields + " -e _ws.malformed 2>/dev/null";
    std::vector<std::string> lines(1);
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return {};
    for (int letter = fgetc(pipe); letter != EOF; letter = fgetc(pipe)) {
      if (letter == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += static_cast<char>(letter);
      }
    }
    pclose(pipe);
    lines.pop_back();
    return lines;
  }

 private:
  void put_native(std::initializer_list<std::uint32_t> words) {
    for (const std::uint32_t word : words) {
      const auto bytes = std::bit_cast<std::array<std::uint8_t, 4>>(word);
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
  }
  Raw bytes_;
};

bool has_tshark() {
  return std::system("command -v tshark >/dev/null 2>&1") == 0;
}

TEST(SdpWire, TsharkReadsTheHeaderOfEachMessage) {
  if (!has_tshark()) GTEST_SKIP() << "tshark is not installed";
  Capture capture;
  std::vector<std::string> expected;
  for (const Golden& golden : all_messages()) {
    const Raw bytes = whole(golden);
    capture.add(bytes);
    std::array<char, 80> text{};
    std::snprintf(text.data(), text.size(), "0x%02x 0x%02x 258 %zu 0x11223344 0x55667788 ",
                  bytes[0], bytes[1], bytes.size());
    expected.emplace_back(text.data());
  }
  const std::string base = " -e infiniband_sdp.bsdh.";
  EXPECT_EQ(capture.dissect(base + "mid" + base + "flags" + base + "bufs" + base + "len" + base +
                            "mseq" + base + "mseqack"),
            expected);
}

TEST(SdpWire, TsharkReadsAHello) {
  if (!has_tshark()) GTEST_SKIP() << "tshark is not installed";
  Capture capture;
  capture.add(raw(write(sample_hello())));
  std::string fields;
  for (const char* field : {"majv", "minv", "ipv", "cap_extmaxadverts", "maxadverts", "desremrcvsz",
                            "localrcvsz", "localport", "src_ip", "dst_ip", "extmaxadverts"}) {
    fields += std::string(" -e infiniband_sdp.hh.") + field;
  }
  const std::vector<std::string> expected = {
      "0x02 0x02 0x04 0x01 0x04 8192 16384 48879 ::10.0.0.1 ::10.0.0.2 0x0104 "};
  EXPECT_EQ(capture.dissect(fields), expected);
}

}  // namespace
}  // namespace ib::sdp
