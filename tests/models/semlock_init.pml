/* semlock_init.pml - the token under names that are used once (semlock_rename.pml, V=2), where
 * --init may make one: there may be several for a time.  A process that looks for the token can miss
 * it in the middle of a rename, so --init may believe at any moment that there is none.  U6 keeps two
 * processes from being in: the holder of a token looks whether there is another, at home first, then
 * away; if there is, it unlinks its own, when it has just made that, or renames it home, where the two
 * become one.
 *   -DMAKERLOOKS  only the maker of a token looks            (must fail)
 *   -DTAKERLOOKS  only the process that renamed one looks    (must fail)
 *   -DLOOKFIRST   --init looks, and makes it then            (must fail)
 */
#ifndef MAXCRASH
#define MAXCRASH 1
#endif
#ifndef MAXACQ
#define MAXACQ 5
#endif
#ifndef MAXINIT
#define MAXINIT 2
#endif
#define N 3
bool home = true;                      /* a token is there under LOCK */
bool away[MAXACQ+2];                   /* one is there under the name of acquisition k */
bool dead[MAXACQ+2];                   /* the process of acquisition k is dead */
byte mine[N]; bool bel[N]; bool killed[N]; bool up[N];
byte nacq = 0, ncrash = 0, ninit = 0;

#define MUTEXCHK assert(bel[0] + bel[1] + bel[2] <= 1)
#define OTHER(k) ((k) != mine[slot] && away[k])
#define OTHERS (OTHER(1) || OTHER(2) || OTHER(3) || OTHER(4) || OTHER(5))
#if MAXACQ != 5
#error OTHERS
#endif
inline newname() { nacq++; mine[slot] = nacq; away[nacq] = true }

proctype P(byte slot)
{
  byte seen; bool made, other;
again:
  atomic { killed[slot] = false; up[slot] = true; mine[slot] = 0; seen = 0; made = false; other = false }
  {
endnone:                                                                   /* none left, and no more --init */
    do
    :: if
       :: atomic { home && nacq < MAXACQ -> home = false; newname(); made = false }     /* U1 */
       :: d_step { nacq < MAXACQ && (away[1] && dead[1] || away[2] && dead[2] || away[3] && dead[3] ||
                                   away[4] && dead[4] || away[5] && dead[5]) ->
                   seen = 1; do :: away[seen] && dead[seen] -> break :: else -> seen++ od };
          if
          :: atomic { away[seen] && nacq < MAXACQ -> away[seen] = false; newname(); made = false }   /* U2 */
          :: else -> goto next
          fi
       :: atomic { ninit < MAXINIT && nacq < MAXACQ -> ninit++; made = true };
#ifdef LOOKFIRST
          if :: home || OTHERS -> goto next :: else -> skip fi;
#endif
          if :: atomic { nacq < MAXACQ -> newname() }                                    /* U5 */
             :: else -> goto next
          fi
       :: nacq >= MAXACQ -> goto done
       fi;
#if defined(MAKERLOOKS)
       if :: made -> skip :: else -> goto in fi;
#elif defined(TAKERLOOKS) || defined(LOOKFIRST)
       if :: made -> goto in :: else -> skip fi;
#endif
       other = home;                                                                    /* U6 */
       if :: !other -> other = OTHERS :: else -> skip fi;
       if
       :: other && made -> away[mine[slot]] = false; goto next
       :: other && !made -> d_step { if :: away[mine[slot]] -> away[mine[slot]] = false; home = true
                                        :: else fi }; goto next
       :: else -> skip
       fi;
in:    atomic { bel[slot] = true; MUTEXCHK };
       bel[slot] = false;
       d_step { if :: away[mine[slot]] -> away[mine[slot]] = false; home = true :: else fi };  /* U4 */
next:  atomic { mine[slot] = 0; seen = 0; made = false; other = false }
    od
  } unless { killed[slot] };
  goto again;
done: up[slot] = false
}
active proctype Killer()
{
  byte s;
end:
  do
  :: ncrash < MAXCRASH ->
     if :: s = 0 :: s = 1 :: s = 2 fi;
endk: d_step { up[s] && !killed[s] -> ncrash++; killed[s] = true; bel[s] = false;
              if :: mine[s] != 0 -> dead[mine[s]] = true :: else fi; s = 0 }
  :: ncrash >= MAXCRASH -> break
  od
}
init { atomic { if :: home = true :: home = false fi; run P(0); run P(1); run P(2) } }
