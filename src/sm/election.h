// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Election: which of several subnet managers is the master [IBA1 14.4.1].
//
// It has no timer and sends nothing: it is told what others say, and says what is to be done.
#pragma once

#include "mad/header.h"
#include "sm/sm_info.h"
#include "sm/subnet/subnet.h"

#include <cstdint>
#include <vector>

namespace ib::sm {

// Another manager, as it has answered.
struct Rival {
  std::uint32_t port = kNone;
  SmInfo info;
};

enum class Step : std::uint8_t {
  SetUp,     // as the master: what has been found is set up
  Wait,      // as a standby, or not active
  HandOver,  // to the rival that is named
  Sweep,     // all is to be found again
};
struct Decision {
  Step step = Step::Wait;
  std::uint32_t port = kNone;          // of the rival
  std::uint32_t lower_master = kNone;  // of SetUp: one that is to look again, and so to give way
};
// Of a Set(SMInfo) by another manager.
struct Verdict {
  std::uint16_t status = mad::mad_status::kOk;
  bool acknowledges = false;  // the sender is told that it is no master any longer
  bool sweeps = false;
};

class Election {
 public:
  // `guid`: of the own port, as soon as it is known.
  Election(std::uint8_t priority, std::uint64_t sm_key) : priority_(priority), key_(sm_key) {}

  void set_guid(std::uint64_t guid) { guid_ = guid; }
  void set_priority(std::uint8_t priority) { priority_ = priority; }
  bool has_guid() const { return guid_ != 0; }
  SmState state() const { return state_; }
  SmInfo info() const;
  void count_activity() { ++activity_; }
  // The rival that a standby watches.
  std::uint32_t watched() const { return watched_; }

  // All nodes have been found, and these are the other managers.
  Decision on_discovered(const std::vector<Rival>& rivals);
  // The one that is watched has answered; or has been silent too often.
  Decision on_poll(const SmInfo& info);
  Decision on_silence();
  // The successor has answered the handover. It is the master now, whether an acknowledgement
  // follows, as IBA has it, or not: OpenSM sends none.
  void on_handed_over();
  // `from`: the port of the sender, if it is known.
  Verdict on_control(std::uint32_t modifier, const SmInfo& sender, std::uint32_t from);

 private:
  Decision stand_by(std::uint32_t port);

  std::uint8_t priority_;
  std::uint64_t key_;
  std::uint64_t guid_ = 0;
  std::uint32_t activity_ = 0;
  SmState state_ = SmState::Discovering;
  std::uint32_t watched_ = kNone;
  std::uint32_t successor_ = kNone;  // to which the master hands over
};

}  // namespace ib::sm
