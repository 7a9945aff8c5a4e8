// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Poster: what executing work requests needs of softibd itself, when a kernel client posts them
// (hca::PosterHost). The requests that a program sends over its socket are requests to file 0
// here, whose handlers answer at once.
#pragma once

#include "al/system.h"
#include "hca/memory/memory_plane.h"
#include "hca/memory/sweep_schedule.h"
#include "io/device.h"

#include <memory>
#include <unordered_map>

namespace ib::al {

class Poster final : public hca::PosterHost {
 public:
  Poster(System& system, io::FileObject& zero) : system_(system), zero_(zero) {}

  Instant now() override { return system_.executor.now(); }
  // Never yields the core: locks that do not become free within the caller's rounds (some
  // milliseconds of this) are left for later.
  void relax(std::uint32_t round) override;
  Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                      std::size_t n) override {
    return system_.host.read_process(who, from, to, n);
  }
  Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                       std::size_t n) override {
    return system_.host.write_process(who, to, from, n);
  }
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) override {
    return system_.host.copy_own(to, from, n);
  }
  bool is_accessible(const void* at, std::size_t n, bool write) override {
    return system_.host.is_accessible(at, n, write);
  }
  std::byte* map_backing(std::uint32_t index, std::uint32_t generation,
                         std::uint64_t& size) override;
  void kick(std::uint32_t slot) override;
  void serve_bounces() override;
  void set_plane(hca::MemoryPlane* plane) { plane_ = plane; }
  platform::Barriers& barriers() override { return system_.host.barriers(); }
  void notify(std::uint32_t cq) override;
  void raise(const verbs::control::RaiseEventIn& event) override;
  void trace(const verbs::control::TraceErrorIn& error) override;

  // A queue pair of this client has ended, and what is its peer's may soon be gone.
  void peer_may_go() { peer_may_go_ = true; }
  // Unmaps files of programs that have destroyed them or have ended, if it is time. Returns when to
  // call it again.
  Duration sweep();

 private:
  struct Backing {
    std::uint32_t generation = 0;
    std::unique_ptr<platform::MappedFile> mapping;
  };
  bool send(std::uint32_t index, const hca::CqEntry& cq);
  template <class In>
  Status ask(verbs::control::Code code, const In& in, std::span<std::byte> out, io::Irp& irp);

  System& system_;
  io::FileObject& zero_;
  hca::MemoryPlane* plane_ = nullptr;
  std::unordered_map<std::uint32_t, Backing> backings_;
  hca::SweepSchedule schedule_;
  bool peer_may_go_ = false;
};

}  // namespace ib::al
