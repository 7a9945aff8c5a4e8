// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Poster: what executing work requests needs of this process (hca::PosterHost): other processes'
// memory, their completion channels and doorbells, softibd for events and traces.
//
// Owns the poster connection (see process.h). Thread safe; called inside OpScopes.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/poster_host.h"
#include "platform/client_host.h"
#include "user/api.h"
#include "user/background/late_events.h"
#include "user/peer_files.h"

#include <memory>

namespace ib::user {

class Process;

class Poster final : public hca::PosterHost {
 public:
  // `slot`: of this process.
  Poster(Process& process, platform::ClientHost& host, const hca::Arena& arena, std::uint32_t slot,
         std::unique_ptr<platform::ControlChannel> channel)
      : process_(process),
        host_(host),
        arena_(arena),
        channel_(std::move(channel)),
        files_(host, *channel_),
        late_events_(arena, slot, files_) {}

  platform::Barriers& barriers() override { return host_.barriers(); }
  Instant now() override { return host_.now(); }
  void relax(std::uint32_t round) override { host_.relax(round); }
  Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                      std::size_t n) override {
    return host_.read_process(who, from, to, n);
  }
  Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                       std::size_t n) override {
    return host_.write_process(who, to, from, n);
  }
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) override {
    return host_.copy_own(to, from, n);
  }
  bool is_accessible(const void* at, std::size_t n, bool write) override {
    return host_.is_accessible(at, n, write);
  }
  std::byte* map_backing(std::uint32_t index, std::uint32_t generation,
                         std::uint64_t& size) override;
  void kick(std::uint32_t slot) override;
  void serve_bounces() override;
  void notify(std::uint32_t cq) override;
  void raise(const control::RaiseEventIn& event) override;
  void trace(const control::TraceErrorIn& error) override;

  PeerFiles& files() { return files_; }
  LateEvents& late_events() { return late_events_; }

 private:
  void wake_service();

  Process& process_;
  platform::ClientHost& host_;
  hca::Arena arena_;
  std::unique_ptr<platform::ControlChannel> channel_;
  PeerFiles files_;
  LateEvents late_events_;
};

}  // namespace ib::user
