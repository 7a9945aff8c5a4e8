// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Side: one end of a conversation, as a test sees it. The same calls reach an Engine of this
// process or one in a conformance_peer.
//
// Calls that must succeed report a failure (with the reason in words) to the test and go on; the
// `try_` forms return the status.
#pragma once

#include "peer/peer_protocol.h"
#include "test_host.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ib::conformance {

using control::Cause;
using user::Completion;
using user::Sge;
using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;
namespace access = verbs::access;
namespace send_flag = verbs::send_flag;
namespace wc_flag = verbs::wc_flag;
namespace qp_attr = verbs::qp_attr;

// How long a test waits for an event that must come; long, since sanitizers and machines are slow.
inline constexpr std::uint32_t kTimeLimitMs = 20'000;
// The same once the test has failed: other events that depend on the failed one may not come
// either.
inline constexpr std::uint32_t kTimeLimitMsAfterFailure = 1'000;
// How long a test waits for an event that must not come. Nothing else is waited for this long.
inline constexpr std::uint32_t kMoment = 60;

inline constexpr std::uint32_t kAllAccess =
    access::kLocalWrite | access::kRemoteAny | access::kMwBind | access::kFlushGlobal;

// How commands reach an Engine.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual Reply call(Command command, const Message& in) = 0;
  virtual void kill() = 0;  // SIGKILL for the process
};
std::unique_ptr<Channel> make_local_channel(const HostSettings& settings, std::string& reason);
std::unique_ptr<Channel> make_process_channel(const HostSettings& settings, std::string& reason);

class Side;

// Memory of a side and a region over it.
struct Region {
  Side* side = nullptr;
  std::uint32_t handle = kNoHandle;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t memory = 0;  // its address
  std::uint64_t iova = 0;    // the address of its first byte in SGEs and for peers
  std::uint64_t length = 0;

  Sge sge(std::uint64_t offset, std::uint32_t bytes) const { return {iova + offset, bytes, lkey}; }
  Sge all() const { return sge(0, static_cast<std::uint32_t>(length)); }
  std::uint64_t at(std::uint64_t offset) const { return iova + offset; }

  void fill(std::uint64_t seed, std::uint64_t offset, std::uint64_t bytes,
            std::uint64_t first = 0) const;
  void fill(std::uint64_t seed) const { fill(seed, 0, length); }
  // Returns the number of bytes that differ from the pattern.
  std::uint64_t mismatches(std::uint64_t seed, std::uint64_t offset, std::uint64_t bytes,
                           std::uint64_t first = 0) const;
  std::uint64_t word(std::uint64_t offset) const;
  void set_word(std::uint64_t offset, std::uint64_t value) const;
  std::vector<std::uint8_t> bytes(std::uint64_t offset, std::uint64_t n) const;
};

struct Work : SendSpec {
  std::vector<Sge> sge;
};

struct Qp;
struct Cq {
  Side* side = nullptr;
  std::uint32_t handle = kNoHandle;

  // Waits for `n` completions. Returns fewer after the time.
  std::vector<Completion> wait(std::uint32_t n, std::uint32_t milliseconds = kTimeLimitMs) const;
  Completion one() const;  // the next completion; fails the test if none comes
  Completion one(WcStatus status) const;
  std::vector<Completion> drain() const;  // all completions that are there now
  bool stays_empty() const { return wait(1, kMoment).empty(); }
  void arm(bool solicited_only = false) const;
};

struct Srq {
  Side* side = nullptr;
  std::uint32_t handle = kNoHandle;
  std::uint32_t srqn = 0;
  Status try_receive(std::uint64_t wr_id, std::vector<Sge> sge) const;
  void receive(std::uint64_t wr_id, std::vector<Sge> sge) const;
};

struct Qp {
  Side* side = nullptr;
  std::uint32_t handle = kNoHandle;
  std::uint32_t qpn = 0;
  control::QpCaps caps;

  Status try_send(const Work& work) const;
  Status try_send(const std::vector<Work>& list, std::uint32_t& accepted) const;
  void send(const Work& work) const;
  Status try_receive(std::uint64_t wr_id, std::vector<Sge> sge) const;
  void receive(std::uint64_t wr_id, std::vector<Sge> sge) const;
  Status try_modify(std::uint32_t mask, const control::QpAttr& attr) const;
  void to(QpState state) const;  // modifies only the state
  control::QueryQpOut query() const;
  QpState state() const;
  bool reaches(QpState state) const;  // within kTimeLimitMs
  Status try_destroy() const;
};

class Side {
 public:
  Side(std::string name, std::unique_ptr<Channel> channel);

  const std::string& name() const { return name_; }
  const SideInfo& info() const { return info_; }
  const std::string& reason() const { return reason_; }  // of the newest failure
  Channel& channel() { return *channel_; }

  // On failure sets reason(). The reply holds the output values.
  Reply call(Command command, const Message& in = {});
  Reply expect(Command command, const Message& in = {});

  std::uint32_t pd();  // the default one, made on first use
  Cq& cq();            // likewise
  std::uint32_t new_pd();
  void forget_defaults();  // after DestroyAll
  std::uint64_t new_memory(std::uint64_t bytes);
  // New memory and a region over it, which begins at `offset` of the memory.
  Region region(std::uint64_t bytes, std::uint32_t access = kAllAccess,
                std::optional<std::uint32_t> in_pd = {}, std::uint64_t offset = 0);
  Region region_over(const RegionSpec& spec);
  Status try_region(const RegionSpec& spec, Region& out);
  Cq new_cq(const CqSpec& spec = {});
  Srq new_srq(SrqSpec spec = {});
  Qp new_qp(QpSpec spec = {});  // missing members get the defaults
  Status try_qp(const QpSpec& spec, Qp& out);
  std::uint32_t new_window(std::uint32_t type, std::uint32_t& rkey, std::uint32_t in_pd);
  std::uint32_t new_channel();
  std::uint32_t new_xrcd(const control::OpenXrcdIn& in);
  std::uint32_t new_address(const verbs::AddressVector& av);
  verbs::AddressVector path_to(const Side& other) const;

  Status destroy(Kind kind, std::uint32_t handle);
  // Returns the cookie of a CQ whose event comes through the channel.
  std::optional<std::uint64_t> channel_event(std::uint32_t channel,
                                             std::uint32_t milliseconds = kTimeLimitMs);
  std::optional<control::EventOut> event(std::uint32_t milliseconds = kTimeLimitMs);
  bool no_event() { return !event(kMoment).has_value(); }

 private:
  std::string name_;
  std::unique_ptr<Channel> channel_;
  SideInfo info_;
  std::string reason_;
  std::uint32_t pd_ = kNoHandle;
  Cq cq_;
};

// --- Work requests, signalled ---

Work send_work(std::uint64_t wr_id, std::vector<Sge> sge, WrOpcode opcode = WrOpcode::Send);
Work rdma(WrOpcode opcode, std::uint64_t wr_id, std::vector<Sge> sge, std::uint32_t rkey,
          std::uint64_t remote_address);
Work rdma(WrOpcode opcode, std::uint64_t wr_id, std::vector<Sge> sge, const Region& remote,
          std::uint64_t offset = 0);

// A FLUSH of `bytes` at `offset`, for global visibility.
Work flush(std::uint64_t wr_id, const Region& remote, std::uint64_t offset, std::uint64_t bytes);

// --- Bringing queue pairs up ---

struct Connection {
  std::uint32_t access = access::kRemoteAny | access::kLocalWrite | access::kFlushGlobal;
  std::uint8_t timeout = 14;  // 67 ms
  std::uint8_t retry_cnt = 3;
  std::uint8_t rnr_retry = 7;      // retries without limit
  std::uint8_t min_rnr_timer = 1;  // 10 us
  std::uint8_t max_rd_atomic = 16;
  std::uint8_t max_dest_rd_atomic = 16;
  verbs::Mtu mtu = verbs::Mtu::B4096;
  std::uint32_t qkey = 0x11111111;
  std::uint16_t pkey_index = 0;
  std::uint32_t sq_psn = 0xfffffe;  // two before the wrap
  std::uint32_t rq_psn = 0xfffffe;
};
void to_init(const Qp& qp, QpType type, const Connection& with = {});
void to_rtr(const Qp& qp, QpType type, const Qp& peer, const Connection& with = {});
void to_rts(const Qp& qp, QpType type, const Connection& with = {});
void connect(const Qp& a, const Qp& b, QpType type, const Connection& with = {});
// Attributes with the mask that the transition requires; a test of wrong attributes changes them.
control::QpAttr init_attributes(const Connection& with = {});
control::QpAttr rtr_attributes(const Qp& qp, const Qp& peer, const Connection& with = {});
control::QpAttr rts_attributes(const Connection& with = {});
std::uint32_t required(QpType type, QpState from, QpState to);

}  // namespace ib::conformance
