// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ErfCapture: MADs as packets of a capture file, for tests that have tshark read them. The file is
// a pcap of ERF records of type 21 (InfiniBand), since tshark rejects linktype 247. A packet has
// the headers that the link would give it [IBA1 5.2]: LRH, GRH if it is addressed by GID, BTH,
// DETH; its CRCs are 0.
#pragma once

#include "base/big_endian.h"
#include "verbs/gid.h"
#include "verbs/types.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ib::mad {

class ErfCapture {
 public:
  struct Address {
    std::uint16_t slid = 1;
    std::uint16_t dlid = 2;
    std::uint8_t sl = 0;
    std::uint32_t source_qpn = 1;
    std::uint32_t dest_qpn = 1;
    std::uint32_t qkey = verbs::kGsiQkey;
    std::uint16_t pkey = 0xffff;
    std::optional<std::pair<verbs::Gid, verbs::Gid>> gids =
        std::nullopt;  // source and destination of a GRH
  };

  ErfCapture() {
    constexpr std::uint32_t kErf = 197;
    word(0xa1b2c3d4);  // the format with microseconds, in the byte order of this machine
    word(std::endian::native == std::endian::little ? 0x0004'0002 : 0x0002'0004);  // version 2.4
    for (const std::uint32_t each : {0u, 0u, 65535u, kErf}) word(each);
  }

  // `mad` is padded to 256 bytes.
  void add(std::span<const std::byte> mad) { add(mad, Address()); }
  void add(std::span<const std::byte> mad, const Address& address) {
    std::vector<std::uint8_t> packet = headers(address);
    for (std::size_t i = 0; i < verbs::kMadBytes; ++i) {
      packet.push_back(i < mad.size() ? static_cast<std::uint8_t>(mad[i]) : 0);
    }
    packet.insert(packet.end(), 4 + 2, 0);  // ICRC, VCRC
    record(packet);
    ++packets_;
  }

  std::size_t packets() const { return packets_; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  // Runs tshark. Returns a row for each packet with the values of `fields` and then "" or the
  // complaint ("Malformed Packet", an expert message). Returns nothing if tshark is not installed:
  // the test is to be skipped. A field that occurs several times has its values joined by ','.
  std::optional<std::vector<std::vector<std::string>>> dissect(
      const std::string& name, const std::vector<std::string>& fields) const {
    if (std::system("command -v tshark >/dev/null 2>&1") != 0) return std::nullopt;
    const std::string file = testing::TempDir() + name + ".pcap";
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
    // That dissector takes any short payload for its own.
    std::string command = "tshark -r '" + file +
                          "' --disable-protocol rpcordma -T fields "
                          "-E separator=/t -E occurrence=a -E aggregator=,";
    for (const std::string& field : fields) command += " -e " + field;
    command += " -e _ws.malformed -e _ws.expert.message 2>/dev/null";
    std::FILE* out = popen(command.c_str(), "r");
    std::vector<std::vector<std::string>> rows;
    std::array<char, 65536> line;
    while (out != nullptr && std::fgets(line.data(), line.size(), out) != nullptr) {
      std::vector<std::string> row = split(line.data());
      const std::string expert = row.back();
      row.pop_back();
      row.back() += expert;
      rows.push_back(std::move(row));
    }
    EXPECT_TRUE(out != nullptr && pclose(out) == 0) << command;
    EXPECT_EQ(rows.size(), packets_) << command;
    std::remove(file.c_str());
    return rows;
  }

 private:
  void word(std::uint32_t value) {
    const auto raw = std::bit_cast<std::array<std::uint8_t, 4>>(value);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  template <class Field>
  static void put(std::vector<std::uint8_t>& to, const Field& field) {
    static_assert(alignof(Field) == 1);
    const auto raw = std::bit_cast<std::array<std::uint8_t, sizeof(Field)>>(field);
    to.insert(to.end(), raw.begin(), raw.end());
  }
  static std::vector<std::string> split(const char* line) {
    std::vector<std::string> cells(1);
    for (; *line != '\0' && *line != '\n'; ++line) {
      if (*line == '\t') {
        cells.emplace_back();
      } else {
        cells.back() += *line;
      }
    }
    return cells;
  }

  static std::vector<std::uint8_t> headers(const Address& address) {
    constexpr std::uint8_t kBthNext = 2, kGrhNext = 3;  // LNH [IBA1 7.7.4]
    constexpr std::uint16_t kPayload = verbs::kMadBytes + 12 + 8 + 4;
    const bool has_grh = address.gids.has_value();
    const unsigned words = (8u + (has_grh ? 40u : 0u) + kPayload) / 4u;
    std::vector<std::uint8_t> out;
    out.push_back(0);  // VL, LVer
    out.push_back(static_cast<std::uint8_t>(address.sl << 4 | (has_grh ? kGrhNext : kBthNext)));
    put(out, Be16(address.dlid));
    put(out, Be16(static_cast<std::uint16_t>(words)));
    put(out, Be16(address.slid));
    if (has_grh) {
      put(out, Be32(6u << 28));
      put(out, Be16(kPayload));
      out.push_back(0x1b);  // next header: BTH
      out.push_back(64);
      put(out, address.gids->first);
      put(out, address.gids->second);
    }
    out.push_back(0x64);  // UD SEND-only [IBA1 9.2.1]
    out.push_back(0);
    put(out, Be16(address.pkey));
    put(out, Be32(address.dest_qpn & 0xff'ffffu));
    put(out, Be32(0));  // PSN
    put(out, Be32(address.qkey));
    put(out, Be32(address.source_qpn & 0xff'ffffu));
    return out;
  }

  void record(const std::vector<std::uint8_t>& packet) {
    constexpr std::size_t kErfHeader = 16;
    const auto length = static_cast<std::uint16_t>(kErfHeader + packet.size());
    word(static_cast<std::uint32_t>(packets_));  // seconds
    word(0);
    word(length);
    word(length);
    bytes_.insert(bytes_.end(), 8, 0);  // time stamp
    bytes_.push_back(21);               // ERF_TYPE_INFINIBAND
    bytes_.push_back(4);                // flags: records of varying length
    put(bytes_, Be16(length));
    put(bytes_, Be16(0));  // lost
    put(bytes_, Be16(static_cast<std::uint16_t>(packet.size())));
    bytes_.insert(bytes_.end(), packet.begin(), packet.end());
  }

  std::vector<std::uint8_t> bytes_;
  std::size_t packets_ = 0;
};

}  // namespace ib::mad
