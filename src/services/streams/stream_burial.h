// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamBurial: how streams end. It finds out which links are closed everywhere, and whose process
// has died in the middle; then it waits for the ends' locks and gives back what was made.
//
// A process that closes a link leaves a hint in device memory, and one that dies is known by its
// session; the links of these are looked at soon. Others may have been closed by processes that are
// no clients (they were inherited, or sent): a slow round finds those.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/system.h"
#include "platform/stream_host.h"
#include "services/streams/stream_table.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

namespace ib::services {

class StreamBurial {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_ending(Stream& stream, bool was_open) = 0;  // its connection is to be ended
    virtual void on_round() = 0;                                // some time has passed
    virtual bool is_busy() const = 0;  // rounds are to follow each other quickly
    virtual void on_none_left() = 0;
  };
  StreamBurial(al::System& system, StreamTable& table, platform::StreamHost& host, Owner& owner)
      : system_(system), table_(table), host_(host), owner_(owner) {}
  StreamBurial(const StreamBurial&) = delete;
  StreamBurial& operator=(const StreamBurial&) = delete;

  // There is something to look at.
  void arm();
  // Its links are to be looked at, `looks` times in as many rounds.
  void suspect(Stream& stream, unsigned looks);
  // The process of a session has died: streams that it was in the middle of are broken.
  void on_process_ended(std::uint64_t session, std::uint32_t slot);
  // Both ends: their programs get an error.
  void break_stream(const Stream& stream);
  // A process that is in the middle of a call is waited for, but no longer than this.
  void begin(Stream& stream, Duration patience);
  // The end of softibd: nobody is waited for.
  void hurry();
  void stop() { timer_.reset(); }

  static constexpr Duration kForEver = std::chrono::hours(24 * 365);

 private:
  void run();
  bool look_for_hints();
  bool look_at_suspects();
  void look_slowly();
  void look_at_links(Stream& stream);
  bool take_locks(const Stream& stream) const;
  void try_endings();
  void unmake(Stream& stream);
  void erase(const Stream& stream);

  al::System& system_;
  StreamTable& table_;
  platform::StreamHost& host_;
  Owner& owner_;
  std::set<std::uint64_t> suspects_;
  std::set<std::uint64_t> ending_;  // that wait for locks
  // Where the rounds over all streams are.
  std::uint64_t hint_cursor_ = 0;
  std::uint64_t slow_cursor_ = 0;
  std::unique_ptr<platform::Timer> timer_;
  Duration interval_{};
};

}  // namespace ib::services
