// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadFile: one open /dev/infiniband/umadN: its agents, and the MADs that its program has not read
// yet. Its answers are those of Linux's ib_umad.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"
#include "services/umad/umad_agents.h"
#include "services/umad/umad_header.h"
#include "services/umad/umad_sends.h"
#include "verbs/control_umad.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ib::services {

class UmadService;

// A MAD for the program: with its header in `bytes`; or only the beginning, and all in `file`.
struct UmadItem {
  verbs::control::UmadMessage message;
  std::vector<std::byte> bytes;
  platform::NativeHandle file{};
};

// The program's end of a file.
class UmadReader {
 public:
  virtual ~UmadReader() = default;
  // Whether it takes one more now; if not, UmadFile::deliver() follows when it does.
  virtual bool has_room() const = 0;
  virtual void deliver(UmadItem item) = 0;
  // Whether the program has closed it, although Close is still on its way.
  virtual bool has_gone() const = 0;
  // The HCA is gone.
  virtual void end() = 0;
};

// The program that has it open.
struct UmadOpener {
  std::string program;
  std::uint32_t pid = 0;
};

class UmadFile {
 public:
  // The most that a program may leave unread; further MADs are lost.
  static constexpr std::size_t kMostItems = 32768;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostSends = 16384;  // of an agent, that wait for a response

  UmadFile(UmadService& service, UmadReader& reader, std::uint32_t port, UmadOpener opener);
  UmadFile(const UmadFile&) = delete;
  UmadFile& operator=(const UmadFile&) = delete;
  ~UmadFile();  // its agents go with it

  std::uint32_t port() const { return port_; }
  const UmadOpener& opener() const { return opener_; }
  std::size_t agents() const;
  std::size_t unread() const { return items_.size(); }
  std::size_t lost() const { return lost_; }

  // The requests of the program.
  verbs::control::UmadDone enable_pkey();
  verbs::control::UmadDone add_agent(const UmadRegisterIn& in);
  verbs::control::UmadDone add_agent(const UmadRegister2In& in);
  verbs::control::UmadDone remove_agent(std::uint32_t id);
  verbs::control::UmadDone write(std::span<const std::byte> bytes);
  void put_back(UmadItem item);

  // A MAD for the agent; the header is filled in but for the agent and the length.
  void receive(const UmadAgent& agent, UmadHeader header, std::span<const std::byte> mad);
  // One of the program's own whose time is up.
  void receive_timeout(const UmadAgent& agent, const UmadSend& send);
  // Whether it is about to be closed: what it has registered is in nobody's way.
  bool has_gone() const { return reader_.has_gone(); }
  // The reader has room.
  void deliver();
  void end();

 private:
  std::size_t header_size() const;
  verbs::control::UmadDone done(Status status) const;
  verbs::control::UmadDone add(const UmadRegistration& what);
  Status write_to(const UmadHeader& header, std::span<const std::byte> mad);
  Status check_size(const UmadAgent& agent, std::span<const std::byte> mad) const;
  void put(const UmadHeader& header, std::span<const std::byte> mad);

  UmadService& service_;
  UmadReader& reader_;
  std::uint32_t port_;
  UmadOpener opener_;
  bool has_pkeys_ = false;
  bool is_used_ = false;  // an agent was registered
  bool is_over_ = false;
  std::array<UmadAgentNumber, verbs::control::kUmadAgents> agents_{};
  std::deque<UmadItem> items_;
  std::size_t bytes_ = 0;
  std::size_t lost_ = 0;
  std::uint32_t last_number_ = 0;
};

}  // namespace ib::services
